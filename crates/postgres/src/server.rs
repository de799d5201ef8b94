//! The handle of a running server: what the rest of the product sees of this crate.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::binaries::Binaries;
use crate::error::StartError;
use crate::folder::{Folder, ROLE};
use crate::predecessor;
use crate::process::{Failure, Launch, Process};
use crate::settings::{Afterwards, Settings, Shutdown};

/// Ports for servers that do not ask for one. They lie below those that the system gives to outgoing connections: a
/// client that tries again and again while the server is away could otherwise be given the server's port, connect to
/// itself, and keep the server from coming back.
const FREE_PORTS: std::ops::Range<u16> = 15_000..32_000;

/// How many ports are tried.
const PORT_ATTEMPTS: usize = 50;

/// How long the children of a killed server may take to notice.
const LINGER_PATIENCE: Duration = Duration::from_secs(30);

const LINGER_PAUSE: Duration = Duration::from_millis(200);

/// A private `PostgreSQL`. It runs until this value is dropped or the process ends, in whatever way it ends.
///
/// Dropping it waits (at most for some seconds) until the server is gone: a durable server ends in order, a fast one at
/// once.
#[derive(Debug)]
pub struct Server {
    // Dropped in this order: the process ends before the folder's lock is given back.
    process: Option<Process>,
    folder: Folder,
    launch: Launch,
    password: String,
    afterwards: Afterwards,
}

impl Server {
    /// Starts a server on the folder, making a cluster there first when it has none. Returns when the server takes
    /// connections; after a crash that is when it has recovered.
    pub fn start(binaries: &Binaries, settings: &Settings) -> Result<Self, StartError> {
        let folder = Folder::open(&settings.folder)?;
        folder.prepare(binaries, settings.durability)?;
        let mut launch = Launch {
            program: binaries.program("postgres"),
            account: folder.account.clone(),
            cluster: folder.cluster(),
            log: folder.log(),
            socket: folder.socket(),
            port: settings.port.unwrap_or(0),
            parameters: settings.parameters(),
            when_orphaned: settings.durability.usual_shutdown(),
        };
        let password = folder.password()?;
        let process = match settings.port {
            Some(_) => start(&folder, &launch)?,
            None => start_on_a_free_port(&folder, &mut launch)?,
        };
        Ok(Self {
            process: Some(process),
            folder,
            launch,
            password,
            afterwards: settings.afterwards,
        })
    }

    /// The address of a database for clients on this machine, with name and password of the superuser.
    pub fn url(&self, database: &str) -> String {
        // Encryption on loopback would protect nothing, and asking for it costs a round trip per connection.
        let port = self.launch.port;
        format!(
            "postgres://{ROLE}:{}@127.0.0.1:{port}/{}?sslmode=disable",
            self.password,
            encode(database)
        )
    }

    /// The same by unix socket, which saves some time per round trip. `None` where the folder's path is too long for
    /// the name of a socket.
    pub fn socket_url(&self, database: &str) -> Option<String> {
        let directory = encode(self.launch.socket_directory()?);
        let (password, port, database) = (&self.password, self.launch.port, encode(database));
        // The host in front is never asked: an address without one is not valid, and the parameter wins.
        Some(format!(
            "postgres://{ROLE}:{password}@localhost:{port}/{database}?host={directory}&sslmode=disable"
        ))
    }

    /// The port on loopback. It stays the same until this value is dropped.
    pub fn port(&self) -> u16 {
        self.launch.port
    }

    /// The folder that holds all of it.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// A command that runs as the server's own account.
    pub(crate) fn command(&self, program: &Path) -> std::process::Command {
        self.folder.account.command(program, &self.folder.path)
    }

    /// The file that the server logs to.
    pub fn log(&self) -> PathBuf {
        self.folder.log()
    }

    /// The server's main process; `None` after [`Server::halt`].
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Whether the server's main process is there. It ends by itself only when something is badly wrong.
    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(Process::is_running)
    }

    /// Ends the server for the time being and keeps the folder: for tests of what happens without a database.
    pub fn halt(&mut self, how: Shutdown) {
        if let Some(mut process) = self.process.take() {
            process.end(how);
        }
    }

    /// Starts the server again after [`Server::halt`], on the same port. Does nothing when it runs.
    pub fn resume(&mut self) -> Result<(), StartError> {
        if !self.is_running() {
            self.process = Some(start(&self.folder, &self.launch)?);
        }
        Ok(())
    }

    /// Ends the server and starts it again on the same port.
    pub fn restart(&mut self, how: Shutdown) -> Result<(), StartError> {
        self.halt(how);
        self.resume()
    }

    /// Ends the server in order, and returns when it is gone.
    pub fn stop(mut self) {
        self.halt(Shutdown::Fast);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt(self.launch.when_orphaned);
        if self.afterwards == Afterwards::Remove
            && let Err(error) = fs::remove_dir_all(&self.folder.path)
        {
            let folder = self.folder.path.display();
            tracing::warn!(%folder, %error, "cannot remove the folder of a throw-away PostgreSQL");
        }
    }
}

/// Starts the server on the port of the launch, when those before it are gone.
fn start(folder: &Folder, launch: &Launch) -> Result<Process, StartError> {
    let deadline = Instant::now() + LINGER_PATIENCE;
    loop {
        predecessor::wait_out(&folder.path, &launch.cluster)?;
        folder.renew_socket_directory()?;
        match launch.start() {
            Ok(process) => return Ok(process),
            Err(Failure::PredecessorLingers(_)) if Instant::now() < deadline => thread::sleep(LINGER_PAUSE),
            Err(Failure::PortTaken) => return Err(StartError::PortTaken { port: launch.port }),
            Err(Failure::PredecessorLingers(error) | Failure::Fatal(error)) => return Err(error),
        }
    }
}

/// Between the look for a free port and the server's start another program can take it; then the next one is tried.
fn start_on_a_free_port(folder: &Folder, launch: &mut Launch) -> Result<Process, StartError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        launch.port = random_port();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, launch.port)).is_ok();
        if !free && attempts < PORT_ATTEMPTS {
            continue;
        }
        match start(folder, launch) {
            Err(StartError::PortTaken { .. }) if attempts < PORT_ATTEMPTS => {}
            outcome => return outcome,
        }
    }
}

/// A port on which nobody listens now, for another server that must be told one, below those of outgoing connections.
pub fn free_port() -> std::io::Result<u16> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let port = random_port();
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) if attempts == PORT_ATTEMPTS => return Err(error),
            Err(_) => {}
        }
    }
}

/// The standard library's only source of chance is the seed of its hash maps, which is good enough to spread ports.
fn random_port() -> u16 {
    let chance = RandomState::new().build_hasher().finish();
    let offset = chance % u64::from(FREE_PORTS.end - FREE_PORTS.start);
    FREE_PORTS.start + u16::try_from(offset).unwrap_or(0)
}

/// What is encoded in an address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Encodes a name for an address.
fn encode(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_databases_are_encoded_for_addresses() {
        assert_eq!(encode("plain_name-1"), "plain_name-1");
        assert_eq!(encode("a b/ä?"), "a%20b%2F%C3%A4%3F");
    }

    #[test]
    fn free_ports_lie_below_those_of_outgoing_connections() {
        for _ in 0..1000 {
            assert!(FREE_PORTS.contains(&free_port().unwrap()));
        }
    }
}
