//! A running `postgres`: started, waited for until it takes connections, ended. Knows nothing of locks or of how the
//! cluster came to be; what it takes is a prepared folder.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::account::Account;
use crate::error::{StartError, at};
use crate::log::Log;
use crate::predecessor::PidFile;
use crate::settings::Shutdown;
use crate::watchdog::Watchdog;

/// How often a state that is about to change is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// How long an orderly shutdown may take: the checkpoint at its end writes all that is in memory.
pub(crate) const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(30);

/// How long an immediate shutdown may take; the server itself kills its children after five seconds.
pub(crate) const IMMEDIATE_PATIENCE: Duration = Duration::from_secs(10);

/// How long a start may take: after a crash the server first replays what its log holds.
const START_PATIENCE: Duration = Duration::from_mins(3);

/// The longest path of a unix socket that all systems accept.
const LONGEST_SOCKET_PATH: usize = 103;

/// Everything one start needs.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) account: Account,
    pub(crate) cluster: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) port: u16,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) when_orphaned: Shutdown,
}

/// A start that did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another program has the port.
    PortTaken,
    /// Children of a killed server are still around; they end by themselves.
    PredecessorLingers(StartError),
    /// Trying again would not help.
    Fatal(StartError),
}

/// A server that takes connections. Dropped, it ends in the way meant for orphans.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    watchdog: Option<Watchdog>,
    when_orphaned: Shutdown,
}

impl Launch {
    /// Where the server puts its socket, when the path is short and plain enough.
    pub(crate) fn socket_directory(&self) -> Option<&str> {
        let directory = self.socket.to_str()?;
        let name = format!("/.s.PGSQL.{}", self.port);
        // The parameter is a list, in which these two have a meaning.
        let plain = !directory.contains([',', '"']);
        (plain && directory.len() + name.len() <= LONGEST_SOCKET_PATH).then_some(directory)
    }

    /// Starts the server and waits until it takes connections.
    pub(crate) fn start(&self) -> Result<Process, Failure> {
        let (log, file) =
            Log::open(&self.log).map_err(|error| Failure::Fatal(at("open", &self.log)(error)))?;
        self.account
            .own(&self.log)
            .map_err(|error| Failure::Fatal(at("change the owner of", &self.log)(error)))?;
        let mut process = self
            .spawn(file)
            .map_err(|error| Failure::Fatal(at("run", &self.program)(error)))?;
        let started = Instant::now();
        loop {
            match process.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return Err(classify(&log, status.to_string())),
                Err(error) => return Err(Failure::Fatal(at("wait for", &self.program)(error))),
            }
            let file = PidFile::read(&self.cluster);
            if file.is_some_and(|file| file.ready && file.pid == process.raw_pid()) {
                return Ok(process);
            }
            if started.elapsed() > START_PATIENCE {
                let not_ready = StartError::NotReady {
                    waited: started.elapsed(),
                    log: log.quote(),
                };
                return Err(Failure::Fatal(not_ready));
            }
            thread::sleep(POLL);
        }
    }

    fn spawn(&self, log: std::fs::File) -> io::Result<Process> {
        let mut watchdog = Watchdog::start(&self.account, self.when_orphaned)?;
        let child = self
            .account
            .command(&self.program, &self.cluster)
            .arg("-D")
            .arg(&self.cluster)
            .args(self.arguments())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C in a terminal goes to the whole group of the owner; the owner decides in which order things end.
            .process_group(0)
            .spawn()?;
        let guarded = watchdog.guard(child.id());
        let process = Process {
            child,
            watchdog: Some(watchdog),
            when_orphaned: self.when_orphaned,
        };
        // An unguarded server must not stay: dropping the process ends it.
        guarded.map(|()| process)
    }

    fn arguments(&self) -> Vec<String> {
        // What is fixed comes last, so that no parameter of a caller opens the server to the network.
        let fixed = [
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("port", self.port.to_string()),
            (
                "unix_socket_directories",
                self.socket_directory().unwrap_or_default().to_owned(),
            ),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
        let all = self.parameters.iter().chain(&fixed);
        all.flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
            .collect()
    }
}

impl Process {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn raw_pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// Whether the server is still there.
    pub(crate) fn is_running(&mut self) -> bool {
        let ended = matches!(self.child.try_wait(), Ok(Some(_)));
        if ended && let Some(watchdog) = self.watchdog.take() {
            watchdog.dismiss();
        }
        !ended
    }

    /// Ends the server, ever more firmly, and returns when it is gone.
    pub(crate) fn end(&mut self, how: Shutdown) {
        let orderly = [
            (Signal::SIGINT, SHUTDOWN_PATIENCE),
            (Signal::SIGQUIT, IMMEDIATE_PATIENCE),
        ];
        let steps = match how {
            Shutdown::Fast => &orderly[..],
            Shutdown::Immediate => &orderly[1..],
        };
        for &(signal, patience) in steps {
            if !self.is_running() {
                return;
            }
            // The child is not reaped yet, so the number is its own.
            let _ = kill(Pid::from_raw(self.raw_pid()), signal);
            let deadline = Instant::now() + patience;
            while self.is_running() && Instant::now() < deadline {
                thread::sleep(POLL);
            }
        }
        if self.is_running() {
            tracing::warn!(pid = self.pid(), "PostgreSQL does not end; killing it");
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.is_running();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(self.when_orphaned);
    }
}

/// Tells from the server's own words whether another try makes sense. They are English whatever the machine's locale:
/// the server runs with `LC_ALL=C`.
fn classify(log: &Log, status: String) -> Failure {
    let words = log.since_start();
    let error = StartError::Ended {
        status,
        log: log.quote(),
    };
    if words.contains("could not bind IPv4 address") {
        Failure::PortTaken
    } else if words.contains("pre-existing shared memory block")
        || words.contains("postmaster.pid\" already exists")
    {
        Failure::PredecessorLingers(error)
    } else {
        Failure::Fatal(error)
    }
}
