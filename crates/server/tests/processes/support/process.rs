//! A server as a child process: started by settings in its environment, ended by signals or with the value that owns it.

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::{TestDatabase, eventually, get};

/// How a server is started; the same one again and again.
#[derive(Clone)]
pub(crate) struct Launch {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// Files that it may have open; none: as many as this process.
    open_files: Option<usize>,
    /// Another binary than the one of this build.
    program: Option<String>,
}

impl Launch {
    /// `serve` on this database, with the embedded engine.
    pub(crate) fn on(database: &TestDatabase) -> Self {
        Self::serve()
            .with("DATABASE_URL", &database.url)
            .with("DATABASE_POOL", "8")
    }

    /// `serve`, on whatever database is named.
    pub(crate) fn serve() -> Self {
        Self {
            arguments: vec!["serve".to_owned()],
            environment: Vec::new(),
            open_files: None,
            program: None,
        }
    }

    /// `dev` and its arguments.
    pub(crate) fn dev(arguments: &[&str]) -> Self {
        let arguments = ["dev"]
            .iter()
            .chain(arguments)
            .map(|&argument| argument.to_owned())
            .collect();
        Self {
            arguments,
            environment: Vec::new(),
            open_files: None,
            program: None,
        }
    }

    /// With Temporal as the engine. A namespace has one task queue, called like it.
    pub(crate) fn temporal(self, address: &str, namespace: &str) -> Self {
        self.with("ENGINE", "temporal")
            .with("TEMPORAL__ADDRESS", address)
            .with("TEMPORAL__NAMESPACE", namespace)
            .with("EXECUTIONS__TASK_QUEUE", namespace)
    }

    pub(crate) fn with(mut self, setting: &str, value: &str) -> Self {
        self.environment
            .push((format!("STATIONMASTER_{setting}"), value.to_owned()));
        self
    }

    /// With something in its environment that is no setting of ours.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn beside(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With another limit of open files.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn with_open_files(mut self, count: usize) -> Self {
        self.open_files = Some(count);
        self
    }

    /// With another binary.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn by(mut self, program: &str) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    /// Starts it and does not wait.
    pub(crate) fn start(&self) -> Process {
        let log = NamedTempFile::new().expect("a file for the log");
        let output = || {
            let file = File::options().append(true).open(log.path());
            Stdio::from(file.expect("the file is there"))
        };
        let (output, errors) = (output(), output());
        self.start_writing(log, output, errors)
    }

    /// Starts it with a log of another kind, which cannot be read here.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn start_logging_to(&self, errors: impl Into<Stdio>) -> Process {
        let log = NamedTempFile::new().expect("a file for the log");
        self.start_writing(log, Stdio::null(), errors.into())
    }

    fn start_writing(&self, log: NamedTempFile, output: Stdio, errors: Stdio) -> Process {
        let program = self.program.clone().unwrap_or_else(program);
        let mut command = match self.open_files {
            None => Command::new(&program),
            Some(count) => with_open_files(count, &program),
        };
        let child = command
            .args(&self.arguments)
            .env_clear()
            .env("STATIONMASTER_LISTEN", "127.0.0.1:0")
            .env("STATIONMASTER_LOG__FORMAT", "json")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .expect("the binary starts");
        Process { child, log }
    }

    /// Starts it and waits until it listens.
    pub(crate) async fn start_listening(&self) -> Process {
        let mut process = self.start();
        eventually("the server listens", async || {
            process.assert_alive();
            process.address().is_some()
        })
        .await;
        process
    }

    /// Starts it and waits until it says that it is ready.
    pub(crate) async fn start_ready(&self) -> Process {
        let process = self.start_listening().await;
        eventually("the server is ready", async || process.readiness().await.0 == 200).await;
        process
    }
}

/// The binary of this build, or another that was asked for: what is measured is measured of a release.
fn program() -> String {
    let built = env!("CARGO_BIN_EXE_stationmaster");
    std::env::var("STATIONMASTER_TEST_BINARY").unwrap_or_else(|_| built.to_owned())
}

/// A program that may have so many files open. The shell becomes it, so its process is the child's.
#[allow(dead_code, reason = "each test program uses its own part of this")]
pub(crate) fn with_open_files(count: usize, program: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args([
        "-c",
        r#"ulimit -n "$0" && exec "$@""#,
        &count.to_string(),
        program,
    ]);
    command
}

/// A process of the binary.
pub(crate) struct Process {
    child: Child,
    log: NamedTempFile,
}

impl Process {
    /// Where it listens, once it does.
    pub(crate) fn address(&self) -> Option<String> {
        let log = self.log();
        let after = log.split("http://").nth(1)?;
        let address: String = after
            .chars()
            .take_while(|c| c.is_ascii_digit() || ".:".contains(*c))
            .collect();
        (after.len() > address.len()).then_some(address)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("the log can be read")
    }

    /// How often something was logged.
    pub(crate) fn said(&self, words: &str) -> usize {
        self.log().matches(words).count()
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("the process is there");
    }

    /// SIGSTOP, and it has stopped: a signal takes a moment to arrive.
    pub(crate) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        let stopped =
            waitpid(Pid::from_raw(self.pid()), Some(WaitPidFlag::WUNTRACED)).expect("it is our child");
        assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
    }

    /// kill -9, and nothing is left of it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    pub(crate) fn assert_alive(&mut self) {
        if let Some(status) = self.child.try_wait().expect("its state can be asked") {
            panic!("the server ended, {status}:\n{}", self.log());
        }
    }

    /// How it ended; `None` while it runs.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its state can be asked")
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, Duration) {
        let took = eventually("the process ends", async || {
            self.child.try_wait().unwrap().is_some()
        })
        .await;
        (self.child.wait().unwrap(), took)
    }

    /// What it says of its readiness.
    pub(crate) async fn readiness(&self) -> (u16, String) {
        let Some(address) = self.address() else {
            return (0, String::new());
        };
        get(&address, "/readyz").await.unwrap_or_default()
    }

    /// A metric, all its labels together; 0 when it was never counted.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let address = self.address().expect("it listens");
        let (_, text) = get(&address, "/metrics").await.expect("it answers");
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let skip = log.lines().count().saturating_sub(30);
            let lines: Vec<&str> = log.lines().skip(skip).collect();
            eprintln!(
                "--- the last lines of server {}:\n{}",
                self.child.id(),
                lines.join("\n")
            );
        }
    }
}

/// Runs a command of the binary to its end; its JSON.
pub(crate) fn command(database: &TestDatabase, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
        .args(arguments)
        .arg("--json")
        .env_clear()
        .env("STATIONMASTER_DATABASE_URL", &database.url)
        .output()
        .expect("the binary runs");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}
