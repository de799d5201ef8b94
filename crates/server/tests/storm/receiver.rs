//! Whoever is called: by the `http` nodes of executions and by wakes. It remembers each call, from when to when, and whether the
//! caller was there to hear the answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::world::now;

/// A call of a node. Times are milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) execution: Uuid,
    pub(crate) node: String,
    pub(crate) room: usize,
    pub(crate) from: i64,
    /// Set before the answer is sent, so whatever follows from the answer is later.
    pub(crate) until: Option<i64>,
}

/// A wake that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Wake {
    pub(crate) id: String,
    pub(crate) at: i64,
}

#[derive(Default)]
struct Book {
    calls: Mutex<Vec<Call>>,
    wakes: Mutex<Vec<Wake>>,
}

pub(crate) struct Receiver {
    pub(crate) address: String,
    book: Arc<Book>,
    task: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let book = Arc::<Book>::default();
        let router = Router::new()
            .route("/node/{room}", post(node))
            .route("/wake", post(wake))
            .with_state(Arc::clone(&book));
        let task = tokio::spawn(async move { axum::serve(socket, router).await.unwrap() });
        Self { address, book, task }
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        lock(&self.book.calls).clone()
    }

    pub(crate) fn wakes(&self) -> Vec<Wake> {
        lock(&self.book.wakes).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A caller that leaves takes its request along: then there is no end.
async fn node(State(book): State<Arc<Book>>, Path(room): Path<usize>, headers: HeaderMap) -> StatusCode {
    let Some((execution, node)) = named(&headers) else {
        return StatusCode::BAD_REQUEST;
    };
    // Between 150 and 400 ms, by the execution's own chance.
    let time = Duration::from_millis(150 + u64::from(execution.as_bytes()[15]) % 250);
    let place = {
        let mut calls = lock(&book.calls);
        calls.push(Call {
            execution,
            node,
            room,
            from: now(),
            until: None,
        });
        calls.len() - 1
    };
    tokio::time::sleep(time).await;
    lock(&book.calls)[place].until = Some(now());
    StatusCode::OK
}

/// `execution-<id>:<node>`.
fn named(headers: &HeaderMap) -> Option<(Uuid, String)> {
    let key = headers.get("idempotency-key")?.to_str().ok()?;
    let (execution, node) = key.strip_prefix("execution-")?.split_once(':')?;
    Some((execution.parse().ok()?, node.to_owned()))
}

async fn wake(State(book): State<Arc<Book>>, headers: HeaderMap) -> StatusCode {
    let Some(id) = headers.get("webhook-id").and_then(|id| id.to_str().ok()) else {
        return StatusCode::BAD_REQUEST;
    };
    lock(&book.wakes).push(Wake {
        id: id.to_owned(),
        at: now(),
    });
    StatusCode::NO_CONTENT
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
