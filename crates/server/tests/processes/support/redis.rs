//! A Redis as a child process.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::authority::{Pair, text};
use super::setting;

/// Ends with the value.
pub(crate) struct Redis {
    child: Child,
}

impl Redis {
    pub(crate) fn start(port: u16) -> Self {
        Self::run(port, &["--port", &port.to_string()])
    }

    /// One that speaks nothing but TLS, and asks for certificates of this authority if there is one.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn with_tls(port: u16, shows: &Pair, asks_for: Option<&Path>) -> Self {
        let asks = if asks_for.is_some() { "yes" } else { "no" };
        let port_text = port.to_string();
        let arguments = [
            ["--port", "0"],
            ["--tls-port", &port_text],
            ["--tls-cert-file", text(&shows.certificate)],
            ["--tls-key-file", text(&shows.key)],
            ["--tls-ca-cert-file", text(asks_for.unwrap_or(&shows.certificate))],
            ["--tls-auth-clients", asks],
        ];
        Self::run(port, arguments.as_flattened())
    }

    fn run(port: u16, arguments: &[&str]) -> Self {
        let child = Command::new(setting("STATIONMASTER_TEST_REDIS_SERVER"))
            .args(arguments)
            .args(["--save", "", "--bind", "127.0.0.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server runs");
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "redis-server does not listen"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
