//! A web server of a few lines that counts how often each path is called, and answers when it is told to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Counts calls. Paths that begin with `/held` are answered only after [`Listener::let_go`].
pub(crate) struct Listener {
    address: std::net::SocketAddr,
    calls: Arc<Mutex<HashMap<String, usize>>>,
    gate: Arc<Semaphore>,
}

impl Listener {
    pub(crate) async fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = Self {
            address: socket.local_addr().unwrap(),
            calls: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        };
        let (calls, gate) = (Arc::clone(&listener.calls), Arc::clone(&listener.gate));
        tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&calls), Arc::clone(&gate)));
            }
        });
        listener
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn calls(&self, path: &str) -> usize {
        self.calls.lock().unwrap().get(path).copied().unwrap_or_default()
    }

    /// Answers every call that is held back, and all that follow.
    pub(crate) fn let_go(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}

async fn answer(mut stream: TcpStream, calls: Arc<Mutex<HashMap<String, usize>>>, gate: Arc<Semaphore>) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut some = [0; 1024];
        match stream.read(&mut some).await {
            Ok(count) if count > 0 => head.extend_from_slice(&some[..count]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    *calls.lock().unwrap().entry(path.clone()).or_default() += 1;
    if path.starts_with("/held") {
        gate.acquire().await.unwrap().forget();
    }
    let _ = stream
        .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        .await;
    let _ = stream.shutdown().await;
}
