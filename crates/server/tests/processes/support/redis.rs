//! A Redis as a child process.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::setting;

/// Ends with the value.
pub(crate) struct Redis {
    child: Child,
}

impl Redis {
    pub(crate) fn start(port: u16) -> Self {
        let child = Command::new(setting("STATIONMASTER_TEST_REDIS_SERVER"))
            .args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1"])
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
