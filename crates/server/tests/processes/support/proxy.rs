//! A network between a server and what it needs (PostgreSQL, Temporal, Redis, targets of wakes) that can fail in every way: it
//! passes, holds, delays or throttles what goes through, in either direction; connections are cut, fall silent, or are half open;
//! new ones are served, refused, or taken and never served.
//!
//! What is held is kept, in order, and goes on when the gate opens, even when its sender is dead by then. What is held
//! when the proxy is dropped is lost. A connection that was silenced stays so for ever, and neither side is told. A plain line
//! ([`Proxy::line_to`]) fails in the same ways, remembers nothing, and when one end leaves the other is told, as by the kernel.

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
    /// So many bytes a second, on each connection.
    Throttled(u32),
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the server to what it needs.
    Requests,
    /// Back.
    Answers,
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
    /// Up to here nothing that is sent arrives.
    deaf: watch::Sender<u64>,
    /// Up to here nothing comes back.
    mute: watch::Sender<u64>,
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
    /// Nothing is remembered, and an end that leaves takes the other along.
    is_plain: bool,
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
        Self::start(server, poison, false).await
    }

    /// A plain line, for as long and as much as one likes.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) async fn line_to(server: &str) -> Self {
        Self::start(server, None, true).await
    }

    async fn start(server: &str, poison: Option<&'static str>, is_plain: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (requests, answers) = (watch::Sender::new(Gate::Open), watch::Sender::new(Gate::Open));
        let watched = Watched {
            seen: Arc::default(),
            passed: Arc::default(),
            poison,
            bites: watch::Sender::new(0),
            is_plain,
        };
        let faults = Faults {
            door: watch::Sender::new(Door::Open),
            newest: watch::Sender::new(0),
            deaf: watch::Sender::new(0),
            mute: watch::Sender::new(0),
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
        self.half_open(Direction::Requests);
        self.half_open(Direction::Answers);
    }

    /// Nothing passes any more in this direction on the connections that are open; new ones are served.
    pub(crate) fn half_open(&self, lost: Direction) {
        let newest = *self.faults.newest.borrow();
        let silent = match lost {
            Direction::Requests => &self.faults.deaf,
            Direction::Answers => &self.faults.mute,
        };
        silent.send_replace(newest);
    }

    /// The host is gone: nothing passes on the connections that are open, and new ones are never served.
    pub(crate) fn vanish(&self) {
        self.door(Door::Silent);
        self.silence();
    }

    /// Resets the connections that are open; new ones are served.
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

    /// On each connection no more than so many bytes a second pass, in both directions.
    pub(crate) fn throttle(&self, bytes: u32) {
        self.requests.send_replace(Gate::Throttled(bytes));
        self.answers.send_replace(Gate::Throttled(bytes));
    }

    /// The same for what comes back.
    pub(crate) fn throttle_answers(&self, bytes: u32) {
        self.answers.send_replace(Gate::Throttled(bytes));
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
        while connections.try_join_next().is_some() {}
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
            faults.deaf.send_modify(|silent| *silent = number);
            faults.mute.send_modify(|silent| *silent = number);
        }
        let ways = (
            Way {
                number,
                silent: faults.deaf.subscribe(),
                gate: requests.subscribe(),
            },
            Way {
                number,
                silent: faults.mute.subscribe(),
                gate: answers.subscribe(),
            },
        );
        connections.spawn(pass(
            client,
            server,
            ways,
            faults.cut.subscribe(),
            watched.clone(),
        ));
    }
}

/// Serves one connection until both sides are done, or it is cut.
async fn pass(
    client: TcpStream,
    server: TcpStream,
    (there, back): (Way, Way),
    mut cut: watch::Receiver<u64>,
    watched: Watched,
) {
    let number = there.number;
    let (mut from_client, to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    let (request, requested) = mpsc::unbounded_channel();
    let (answer, answered) = mpsc::unbounded_channel();
    let is_plain = watched.is_plain;
    let both_ways = async {
        let asks = read(&mut from_client, request, Some(watched.clone()));
        let passes = write_requests(requested, to_server, there, watched);
        let answers = read(&mut from_server, answer, None);
        let returns = write_answers(answered, to_client, back);
        if is_plain {
            tokio::select! { () = asks => {}, () = passes => {}, () = answers => {}, () = returns => {} }
        } else {
            futures::future::join4(asks, passes, answers, returns).await;
        }
    };
    let was_cut = tokio::select! {
        () = both_ways => false,
        _ = cut.wait_for(|cut| *cut >= number) => true,
    };
    if was_cut {
        for socket in [from_client.as_ref(), from_server.as_ref()] {
            // Closed in this way, it is reset.
            let _ = socket.set_zero_linger();
        }
    }
}

/// One direction of a connection.
struct Way {
    number: u64,
    silent: watch::Receiver<u64>,
    gate: watch::Receiver<Gate>,
}

async fn read(
    from: &mut OwnedReadHalf,
    chunks: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    watched: Option<Watched>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let chunk = buffer[..length].to_vec();
        if let Some(watched) = watched.as_ref().filter(|watched| !watched.is_plain) {
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
    let passed = |chunk: &[u8]| {
        if !watched.is_plain {
            remember(&watched.passed, chunk);
        }
    };
    write(chunks, &mut to, gate, passed).await;
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
        // What is throttled goes in pieces, twenty a second.
        let pieces = match state {
            Gate::Throttled(bytes) => (bytes as usize / 20).max(1),
            _ => chunk.len(),
        };
        for piece in chunk.chunks(pieces) {
            if to.write_all(piece).await.is_err() {
                return;
            }
            if let Gate::Throttled(bytes) = state {
                let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
                tokio::time::sleep(Duration::from_secs(1) * length / bytes).await;
            }
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
