//! Ends the server when its owner dies, also by a signal that cannot be caught. A shell waits on a pipe whose other end
//! only the owner has; the kernel closes that end whatever happens to the owner.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use crate::account::Account;
use crate::settings::Shutdown;

/// The first line names the server. A second line means that its owner ended it; the end of the pipe instead of a
/// second line means that the owner is gone.
const SCRIPT: &str = r#"read -r server && { read -r _ || kill -s "$1" "$server"; }"#;

/// The shell that waits. The standard library makes the pipe close-on-exec, so other children of ours cannot keep the
/// owner's end open.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts the shell before there is a server, so that the time in which a server has none is as short as it can be.
    pub(crate) fn start(account: &Account, when_orphaned: Shutdown) -> io::Result<Self> {
        let signal = when_orphaned.signal().as_str().trim_start_matches("SIG");
        let mut shell = account
            .command("sh", Path::new("/"))
            .args(["-c", SCRIPT, "sh", signal])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal goes to the whole group of the owner; the owner decides in which order things end.
            .process_group(0)
            .spawn()?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// Names the server to end.
    pub(crate) fn guard(&mut self, server: u32) -> io::Result<()> {
        self.tell(&server.to_string())
    }

    /// The server has ended; its number may soon belong to another process.
    pub(crate) fn dismiss(mut self) {
        // A watchdog that somebody ended needs no dismissal.
        let _ = self.tell("ended");
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(pipe, "{line}")
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.shell.wait();
    }
}
