//! A Temporal dev server as a child process, ended with the value that owns it.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROGRAM: &str = "STATIONMASTER_TEST_TEMPORAL_CLI";

static SHARED: Mutex<Weak<DevServer>> = Mutex::new(Weak::new());

pub(crate) struct DevServer {
    pub(crate) address: String,
    child: Child,
}

impl DevServer {
    /// The server that all tests use which do not harm it. It lives while any of them does.
    pub(crate) fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start(free_port()));
        *shared = Arc::downgrade(&server);
        server
    }

    /// A server of one's own, on a port that was free a moment ago.
    pub(crate) fn start(port: u16) -> Self {
        let program = std::env::var_os(PROGRAM).unwrap_or_else(|| {
            panic!("{PROGRAM} does not name the program `temporal`; run the tests with `cargo xtask test`, which sets it")
        });
        let child = Command::new(&program)
            .args([
                "server",
                "start-dev",
                "--headless",
                "--ip",
                "127.0.0.1",
                "--log-level",
                "error",
            ])
            .args(["--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
        let mut server = Self {
            address: format!("127.0.0.1:{port}"),
            child,
        };
        let begun = Instant::now();
        while TcpStream::connect(&server.address).is_err() {
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("the dev server ended at once: {status}");
            }
            assert!(
                begun.elapsed() < super::PATIENCE,
                "the dev server does not listen"
            );
            sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn free_port() -> u16 {
    stationmaster_postgres::free_port().unwrap()
}
