//! Makes sure that nobody else serves a cluster: a server whose owner died may still be writing its last checkpoint, or,
//! in rare cases, may not know yet that it is alone. Called with the folder's lock held, which is why a server found
//! here has no owner and may be told to end.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{StartError, at};
use crate::process::{IMMEDIATE_PATIENCE, POLL, SHUTDOWN_PATIENCE};

/// The file in which a server says that it is there, and how far it got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: i32,
    pub(crate) ready: bool,
}

impl PidFile {
    /// Reads the file; `None` when there is none or it is just being written.
    pub(crate) fn read(cluster: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(cluster.join("postmaster.pid")).ok()?)
    }

    /// The first line is the process, the eighth the state, padded with spaces.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let pid = lines.next()?.trim().parse().ok()?;
        Some(Self {
            pid,
            // A replica that takes questions says that it stands by.
            ready: lines
                .nth(6)
                .is_some_and(|state| matches!(state.trim(), "ready" | "standby")),
        })
    }
}

/// Returns when no server runs on the cluster any more and nothing of one is left that would keep the next from starting.
pub(crate) fn wait_out(folder: &Path, cluster: &Path) -> Result<(), StartError> {
    let started = Instant::now();
    for (signal, patience) in [
        (Signal::SIGINT, SHUTDOWN_PATIENCE),
        (Signal::SIGQUIT, IMMEDIATE_PATIENCE),
    ] {
        let Some(pid) = living_server(cluster) else {
            return remove_stale_file(cluster);
        };
        tracing::info!(pid, %signal, "an earlier PostgreSQL without an owner still runs; telling it to end");
        // Not being allowed to signal it changes nothing: it is waited for all the same.
        let _ = kill(Pid::from_raw(pid), signal);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if living_server(cluster).is_none() {
                return remove_stale_file(cluster);
            }
            thread::sleep(POLL);
        }
    }
    match living_server(cluster) {
        None => remove_stale_file(cluster),
        Some(pid) => Err(StartError::PredecessorRuns {
            folder: folder.to_path_buf(),
            pid,
            waited: started.elapsed(),
        }),
    }
}

/// The process that serves the cluster, if one does. After a crash the number in the file may belong to any program;
/// a server of ours shows its cluster on the command line.
fn living_server(cluster: &Path) -> Option<i32> {
    let PidFile { pid, .. } = PidFile::read(cluster)?;
    let exists = !matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH));
    let ours = exists && command_line(pid).contains(&*cluster.to_string_lossy());
    ours.then_some(pid)
}

/// The command line of a process; empty when it is gone or a zombie.
fn command_line(pid: i32) -> String {
    let bytes = if Path::new("/proc/self/cmdline").exists() {
        fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
    } else {
        let output = Command::new("ps")
            .args(["-o", "command=", "-p", &pid.to_string()])
            .output();
        output.map(|output| output.stdout).unwrap_or_default()
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The server removes such a file itself unless the number in it belongs to a living process. By now we know that this
/// process is no server of this cluster.
fn remove_stale_file(cluster: &Path) -> Result<(), StartError> {
    let file = cluster.join("postmaster.pid");
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at("remove the stale", &file)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_on_the_eighth_line() {
        let starting = "42\n/data\n1700000000\n5432\n/data/socket\n127.0.0.1\n  12345         0\nstarting\n";
        assert_eq!(
            PidFile::parse(starting),
            Some(PidFile {
                pid: 42,
                ready: false
            })
        );
        let ready = starting.replace("starting", "ready   ");
        assert_eq!(PidFile::parse(&ready), Some(PidFile { pid: 42, ready: true }));
        assert_eq!(PidFile::parse(""), None);
    }
}
