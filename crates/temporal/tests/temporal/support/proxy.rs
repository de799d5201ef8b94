//! A network between the engine and the server that fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All bytes pass.
    Open,
    /// All bytes are swallowed; connections stay.
    Mute,
    /// What the engine sends passes, what the server answers is swallowed.
    AnswersLost,
    /// What the engine sends passes; the connection breaks when the server answers.
    BreaksOnAnswer,
}

#[derive(Clone, Copy)]
enum Direction {
    ToServer,
    ToEngine,
}

pub(crate) struct Proxy {
    pub(crate) address: String,
    mode: watch::Sender<Mode>,
    server: watch::Sender<String>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn before(server: &str, mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (mode, modes) = watch::channel(mode);
        let (server, servers) = watch::channel(server.to_owned());
        let connections = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(accept(listener, servers, modes, Arc::clone(&connections)));
        Self {
            address,
            mode,
            server,
            connections,
            task,
        }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Breaks all connections; whoever connects from now on comes to this server.
    pub(crate) fn lead_to(&self, server: &str) {
        self.server.send_replace(server.to_owned());
    }

    /// How many connections were ever accepted.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    mut servers: watch::Receiver<String>,
    modes: watch::Receiver<Mode>,
    connections: Arc<AtomicUsize>,
) {
    while let Ok((engine, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        let address = servers.borrow_and_update().clone();
        let mut moved = servers.clone();
        let Ok(server) = TcpStream::connect(&address).await else {
            continue;
        };
        let (from_engine, to_engine) = engine.into_split();
        let (from_server, to_server) = server.into_split();
        let there = pump(from_engine, to_server, Direction::ToServer, modes.clone());
        let back = pump(from_server, to_engine, Direction::ToEngine, modes.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = there => {}
                () = back => {}
                _ = moved.changed() => {}
            }
        });
    }
}

/// Moves bytes until either side closes or the mode breaks the connection.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    direction: Direction,
    modes: watch::Receiver<Mode>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let mode = *modes.borrow();
        match (mode, direction) {
            (Mode::Mute, _) | (Mode::AnswersLost, Direction::ToEngine) => {}
            (Mode::BreaksOnAnswer, Direction::ToEngine) => return,
            (Mode::Open | Mode::AnswersLost | Mode::BreaksOnAnswer, _) => {
                if to.write_all(&buffer[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
