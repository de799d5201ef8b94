//! What a service manager is told (systemd's protocol of notifications): that this server is ready, that it lives, that it is stopping. Nothing is
//! told where nobody asked, and nothing that goes wrong here stops a server.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Who listens, and how often it wants to hear that we live.
#[derive(Debug)]
pub(crate) struct Manager {
    socket: UnixDatagram,
    heartbeat: Option<Duration>,
}

impl Manager {
    /// The one that started this process and said where it listens, if there is one.
    pub(crate) fn here() -> Option<Self> {
        let place = env::var("NOTIFY_SOCKET").ok()?;
        let ours = |pid: String| pid == std::process::id().to_string();
        // The watch may be meant for another process of the same service.
        let watched = env::var("WATCHDOG_PID").map_or(true, ours);
        let interval = env::var("WATCHDOG_USEC").ok().filter(|_| watched);
        match Self::at(&place, interval.as_deref()) {
            Ok(manager) => Some(manager),
            Err(error) => {
                tracing::warn!(%error, place, "The service manager cannot be told that this server is ready (NOTIFY_SOCKET)");
                None
            }
        }
    }

    fn at(place: &str, interval: Option<&str>) -> io::Result<Self> {
        let address = match place.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(place)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        // A manager that does not read must hold nobody up.
        socket.set_nonblocking(true)?;
        let interval = interval.and_then(|microseconds| microseconds.parse().ok());
        Ok(Self {
            socket,
            // Half of what is asked for, as its makers advise.
            heartbeat: interval.map(|microseconds| Duration::from_micros(microseconds) / 2),
        })
    }

    /// This server answers and may act.
    pub(crate) fn ready(&self, address: std::net::SocketAddr) {
        self.tell(&format!("READY=1\nSTATUS=Serving on {address}"));
    }

    /// It was told to stop, and finishes what is under way.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Finishing what is under way");
    }

    /// Says that this server lives, as often as it was asked to, for as long as its tasks get their turn.
    pub(crate) async fn keep_alive(&self) {
        let Some(interval) = self.heartbeat else {
            return std::future::pending().await;
        };
        loop {
            self.tell("WATCHDOG=1");
            tokio::time::sleep(interval).await;
        }
    }

    fn tell(&self, words: &str) {
        if let Err(error) = self.socket.send(words.as_bytes()) {
            tracing::debug!(%error, "The service manager was not told");
        }
    }
}
