//! A server on a database of its own, and the binary to work through it.

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::support::{Ended, TestDatabase, binary, run, text};

/// A server process.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    /// May do everything.
    pub(crate) token: String,
    pub(crate) database: TestDatabase,
}

impl Served {
    pub(crate) fn start() -> Self {
        let database = TestDatabase::migrated();
        let made = database.json(&["tokens", "create", "boss", "--role", "admin"]);
        let log = NamedTempFile::new().expect("a file");
        let output = || {
            File::options()
                .append(true)
                .open(log.path())
                .expect("the file is there")
        };
        let environment = [
            ("STATIONMASTER_DATABASE_URL", database.url()),
            ("STATIONMASTER_DATABASE_POOL", "6".to_owned()),
            ("STATIONMASTER_LISTEN", "127.0.0.1:0".to_owned()),
            ("STATIONMASTER_LOG__FORMAT", "json".to_owned()),
        ];
        let environment: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let child = binary(&["serve"], &environment)
            .stdin(Stdio::null())
            .stdout(output())
            .stderr(output())
            .spawn()
            .expect("the server starts");
        let url = listening(log.path());
        Self {
            child,
            url,
            token: text(&made, "secret"),
            database,
        }
    }

    /// Ends the server in good order. Its database stays.
    pub(crate) fn stop(&self) {
        let id = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        kill(id, Signal::SIGTERM).expect("it is there");
        let began = Instant::now();
        while !self
            .database
            .json(&["servers", "list"])
            .as_array()
            .is_some_and(Vec::is_empty)
        {
            assert!(began.elapsed() < Duration::from_mins(1), "it does not leave");
        }
    }

    /// Runs a command through the server, with this token.
    pub(crate) fn run_as(&self, token: &str, arguments: &[&str]) -> Ended {
        run(
            arguments,
            &[("STATIONMASTER_URL", &self.url), ("STATIONMASTER_TOKEN", token)],
            "",
        )
    }

    /// Runs a command that must succeed through the server; its words.
    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let ended = self.run_as(&self.token, arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// The same; its JSON.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.done(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// Runs a command that must be refused with this code; what it said.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let ended = self.run_as(&self.token, arguments);
        assert_eq!(
            ended.code, code,
            "{arguments:?}: {}{}",
            ended.stdout, ended.stderr
        );
        assert_eq!(ended.stdout, "", "{arguments:?} is refused, so it has no result");
        ended.stderr
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listening(log: &std::path::Path) -> String {
    let started = Instant::now();
    loop {
        let said = std::fs::read_to_string(log).expect("the log can be read");
        let address: Option<String> = said.split("http://").nth(1).map(|after| {
            let address = after
                .chars()
                .take_while(|c| c.is_ascii_digit() || ".:".contains(*c));
            address.collect()
        });
        if let Some(address) = address.filter(|address| !address.is_empty()) {
            return format!("http://{address}");
        }
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "it does not listen: {said}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
