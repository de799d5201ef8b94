//! A network between a server and what it needs (PostgreSQL, Temporal, Redis, targets of wakes) that can fail in every way.
//!
//! What is held is kept, in order, and goes on when the gate opens, even when its sender is dead by then. What is held
//! when the proxy is dropped is lost. A connection that was silenced stays so for ever, and neither side is told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What becomes of bytes in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Held,
    Late(Duration),
}

/// What becomes of new connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    /// Turned away, as by a host on which nobody listens.
    Refusing,
    /// Taken, and never served: as by a host that is switched off.
    Silent,
}

/// Faults of whole connections; these are numbered from 1.
#[derive(Clone)]
struct Faults {
    door: watch::Sender<Door>,
    /// The last connection that was made.
    newest: watch::Sender<u64>,
    /// Up to here they are silent.
    silent: watch::Sender<u64>,
    /// Up to here they are closed.
    cut: watch::Sender<u64>,
}

#[derive(Clone)]
struct Watched {
    seen: Arc<Mutex<Vec<u8>>>,
    passed: Arc<Mutex<Vec<u8>>>,
    /// Requests with these bytes in them stay here, and all that follows on their connection.
    poison: Option<&'static str>,
    bites: watch::Sender<usize>,
}

pub(crate) struct Proxy {
    pub(crate) address: String,
    pub(crate) requests: watch::Sender<Gate>,
    pub(crate) answers: watch::Sender<Gate>,
    faults: Faults,
    watched: Watched,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn before(server: &str) -> Self {
        Self::with_poison(server, None).await
    }

    /// One that swallows requests with these bytes.
    pub(crate) async fn with_poison(server: &str, poison: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (requests, answers) = (watch::Sender::new(Gate::Open), watch::Sender::new(Gate::Open));
        let watched = Watched {
            seen: Arc::default(),
            passed: Arc::default(),
            poison,
            bites: watch::Sender::new(0),
        };
        let faults = Faults {
            door: watch::Sender::new(Door::Open),
            newest: watch::Sender::new(0),
            silent: watch::Sender::new(0),
            cut: watch::Sender::new(0),
        };
        let mut tasks = JoinSet::new();
        let accept = accept(
            listener,
            server.to_owned(),
            (requests.clone(), answers.clone()),
            faults.clone(),
            watched.clone(),
        );
        tasks.spawn(accept);
        Self {
            address,
            requests,
            answers,
            faults,
            watched,
            _tasks: tasks,
        }
    }

    /// Nothing passes any more on the connections that are open, in either direction; new ones are served.
    pub(crate) fn silence(&self) {
        let newest = *self.faults.newest.borrow();
        self.faults.silent.send_replace(newest);
    }

    /// Closes the connections that are open; new ones are served.
    pub(crate) fn cut(&self) {
        let newest = *self.faults.newest.borrow();
        self.faults.cut.send_replace(newest);
    }

    /// What becomes of new connections from now on.
    pub(crate) fn door(&self, door: Door) {
        self.faults.door.send_replace(door);
    }

    /// Everything is late by this, in both directions.
    pub(crate) fn delay(&self, by: Duration) {
        self.requests.send_replace(Gate::Late(by));
        self.answers.send_replace(Gate::Late(by));
    }

    pub(crate) fn hold_requests(&self) {
        self.requests.send_replace(Gate::Held);
    }

    pub(crate) fn hold_answers(&self) {
        self.answers.send_replace(Gate::Held);
    }

    pub(crate) fn open(&self) {
        self.requests.send_replace(Gate::Open);
        self.answers.send_replace(Gate::Open);
    }

    /// Did the server ever send these bytes, whether or not they were let through?
    pub(crate) fn was_sent(&self, words: &str) -> bool {
        holds(&self.watched.seen, words)
    }

    /// Were these bytes let through to Temporal?
    pub(crate) fn has_passed(&self, words: &str) -> bool {
        holds(&self.watched.passed, words)
    }

    /// How many poisoned requests were swallowed.
    pub(crate) fn bites(&self) -> usize {
        *self.watched.bites.borrow()
    }
}

async fn accept(
    listener: TcpListener,
    server: String,
    (requests, answers): (watch::Sender<Gate>, watch::Sender<Gate>),
    faults: Faults,
    watched: Watched,
) {
    // Ended with the proxy.
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let door = *faults.door.borrow();
        if door == Door::Refusing {
            let _ = client.set_zero_linger();
            continue;
        }
        let Ok(server) = TcpStream::connect(&server).await else {
            continue;
        };
        faults.newest.send_modify(|newest| *newest += 1);
        let number = *faults.newest.borrow();
        if door == Door::Silent {
            faults.silent.send_modify(|silent| *silent = number);
        }
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (request, requested) = mpsc::unbounded_channel();
        let (answer, answered) = mpsc::unbounded_channel();
        let silent = faults.silent.subscribe();
        let gate = |gate: &watch::Sender<Gate>| Way {
            number,
            silent: silent.clone(),
            gate: gate.subscribe(),
        };
        let passing = futures::future::join4(
            read(from_client, request, Some(watched.clone())),
            write_requests(requested, to_server, gate(&requests), watched.clone()),
            read(from_server, answer, None),
            write_answers(answered, to_client, gate(&answers)),
        );
        let mut cut = faults.cut.subscribe();
        connections.spawn(async move {
            tokio::select! {
                _ = passing => {}
                _ = cut.wait_for(|cut| *cut >= number) => {}
            }
        });
    }
}

/// One direction of a connection.
struct Way {
    number: u64,
    silent: watch::Receiver<u64>,
    gate: watch::Receiver<Gate>,
}

async fn read(
    mut from: OwnedReadHalf,
    chunks: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    watched: Option<Watched>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let chunk = buffer[..length].to_vec();
        if let Some(watched) = &watched {
            remember(&watched.seen, &chunk);
            let poison = watched.poison.map(str::as_bytes);
            if poison.is_some_and(|poison| chunk.windows(poison.len()).any(|window| window == poison)) {
                watched.bites.send_modify(|bites| *bites += 1);
                return;
            }
        }
        if chunks.send((Instant::now(), chunk)).is_err() {
            return;
        }
    }
}

/// The server is not told when its client is gone: it would drop what has just arrived.
async fn write_requests(
    chunks: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    mut to: OwnedWriteHalf,
    gate: Way,
    watched: Watched,
) {
    write(chunks, &mut to, gate, |chunk| remember(&watched.passed, chunk)).await;
    std::future::pending::<()>().await;
}

async fn write_answers(
    chunks: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    mut to: OwnedWriteHalf,
    gate: Way,
) {
    write(chunks, &mut to, gate, |_| ()).await;
}

async fn write(
    mut chunks: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    to: &mut OwnedWriteHalf,
    mut way: Way,
    passed: impl Fn(&[u8]),
) {
    while let Some((came_at, chunk)) = chunks.recv().await {
        let open = way.gate.wait_for(|gate| *gate != Gate::Held).await;
        let Ok(state) = open.map(|state| *state) else {
            return;
        };
        if let Gate::Late(by) = state {
            tokio::time::sleep_until(came_at + by).await;
        }
        if *way.silent.borrow() >= way.number {
            std::future::pending::<()>().await;
        }
        if to.write_all(&chunk).await.is_err() {
            return;
        }
        passed(&chunk);
    }
}

fn remember(bytes: &Mutex<Vec<u8>>, chunk: &[u8]) {
    bytes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend_from_slice(chunk);
}

fn holds(bytes: &Mutex<Vec<u8>>, words: &str) -> bool {
    let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
    bytes
        .windows(words.len())
        .any(|window| window == words.as_bytes())
}
