//! A receiver of wakes: a real HTTP server that keeps what it is sent and answers as it is told.

#![allow(dead_code, reason = "each test program uses its own part of this")]
#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test, and the panic says where"
)]

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, Response, Uri};
use tokio::sync::Semaphore;

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
    pub(crate) status: u16,
    /// The other end of the connection.
    pub(crate) peer: SocketAddr,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn id(&self) -> String {
        self.header("webhook-id").to_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What it says to a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    /// Not before the receiver is told to let go.
    pub(crate) held: bool,
    pub(crate) after: Duration,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub(crate) fn held() -> Self {
        Self {
            held: true,
            ..Self::status(200)
        }
    }
}

#[derive(Default)]
struct Script {
    /// For the next requests to a path, one after the other.
    next: HashMap<String, VecDeque<Reply>>,
    /// For all others to a path.
    always: HashMap<String, Reply>,
}

struct Inner {
    received: Mutex<Vec<Received>>,
    arrived: Mutex<usize>,
    script: Mutex<Script>,
    gate: Semaphore,
}

/// See the module. Answers 200 unless it is told otherwise.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
    _task: Arc<Task>,
}

struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    pub(crate) async fn start_at(address: &str) -> Self {
        let socket = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = socket.local_addr().unwrap();
        let inner = Arc::new(Inner {
            received: Mutex::default(),
            arrived: Mutex::default(),
            script: Mutex::default(),
            gate: Semaphore::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { axum::serve(socket, service).await.unwrap() });
        Self {
            address,
            inner,
            _task: Arc::new(Task(task)),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers the next requests to a path with these, one after the other.
    pub(crate) fn next(&self, path: &str, replies: impl IntoIterator<Item = Reply>) {
        let mut script = self.inner.script.lock().unwrap();
        script.next.entry(path.to_owned()).or_default().extend(replies);
    }

    /// Answers every request to a path with this.
    pub(crate) fn always(&self, path: &str, reply: Reply) {
        self.inner
            .script
            .lock()
            .unwrap()
            .always
            .insert(path.to_owned(), reply);
    }

    /// Everything that was answered.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.inner.received.lock().unwrap().clone()
    }

    pub(crate) fn at(&self, path: &str) -> Vec<Received> {
        let all = self.received();
        all.into_iter().filter(|received| received.path == path).collect()
    }

    /// Requests that came, answered or not.
    pub(crate) fn arrived(&self) -> usize {
        *self.inner.arrived.lock().unwrap()
    }

    /// Answers what is held back, and all that follows.
    pub(crate) fn let_go(&self) {
        self.inner.gate.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}

async fn answer(
    State(inner): State<Arc<Inner>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<axum::body::Body> {
    let path = uri.path().to_owned();
    *inner.arrived.lock().unwrap() += 1;
    let reply = {
        let mut script = inner.script.lock().unwrap();
        let next = script.next.get_mut(&path).and_then(VecDeque::pop_front);
        next.or_else(|| script.always.get(&path).cloned())
            .unwrap_or_else(|| Reply::status(200))
    };
    if reply.held {
        inner.gate.acquire().await.unwrap().forget();
    }
    tokio::time::sleep(reply.after).await;
    inner.received.lock().unwrap().push(Received {
        path,
        headers,
        body: body.to_vec(),
        at: Instant::now(),
        status: reply.status,
        peer,
    });
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(reply.body.into()).unwrap()
}
