//! What the tests of the private server share: binaries, fresh folders and queries by `psql`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use stationmaster_postgres::{Binaries, Durability, Settings};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn binaries() -> Binaries {
    let hint = env::var_os("STATIONMASTER_TEST_POSTGRES_BIN").map(PathBuf::from);
    Binaries::find(hint.as_deref()).expect("a PostgreSQL server is installed")
}

/// A fresh folder; fast unless a test is about durability.
pub(crate) fn fresh() -> Settings {
    Settings::throw_away(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

pub(crate) fn durable() -> Settings {
    Settings {
        durability: Durability::Durable,
        ..fresh()
    }
}

/// Runs one statement and returns what it prints; an error as `Err`.
pub(crate) fn query(url: &str, statement: &str) -> Result<String, String> {
    let psql = binaries().program("psql");
    let arguments = [
        "-X",
        "-A",
        "-t",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-c",
        statement,
        url,
    ];
    let output = Command::new(psql)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("psql runs");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

pub(crate) fn exists(pid: i32) -> bool {
    !matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH))
}

/// Waits for something that must come to pass.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: still not so");
        thread::sleep(Duration::from_millis(20));
    }
}
