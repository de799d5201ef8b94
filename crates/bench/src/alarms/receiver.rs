//! Receivers of wakes that do as little as possible: read a request, note its id and when it came, answer 204.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// What came.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// The first arrival of each id.
    pub first: HashMap<String, Timestamp>,
    /// Requests in all.
    pub requests: usize,
}

/// See the module.
pub struct Receiver {
    /// Where it listens.
    pub address: SocketAddr,
    arrivals: Arc<Mutex<Arrivals>>,
    task: tokio::task::JoinHandle<()>,
}

impl Receiver {
    /// Starts one on a free port, which takes so long for an answer.
    pub async fn start(answer_after: Duration) -> Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let arrivals = Arc::<Mutex<Arrivals>>::default();
        let shared = Arc::clone(&arrivals);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let arrivals = Arc::clone(&shared);
                // A client that goes away ends its connection, nothing else.
                tokio::spawn(async move { drop(serve(stream, &arrivals, answer_after).await) });
            }
        });
        Ok(Self {
            address,
            arrivals,
            task,
        })
    }

    /// What came so far; begins anew.
    #[must_use]
    pub fn take(&self) -> Arrivals {
        std::mem::take(&mut *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    arrivals: &Mutex<Arrivals>,
    answer_after: Duration,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(4096);
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let header = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches(':').trim().to_owned())
        };
        let length: usize = header("content-length")
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        let now = Timestamp::now();
        {
            let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            arrivals.requests += 1;
            if let Some(id) = header("webhook-id") {
                arrivals.first.entry(id).or_insert(now);
            }
        }
        buffer.drain(..head + length);
        if !answer_after.is_zero() {
            tokio::time::sleep(answer_after).await;
        }
        stream.write_all(ANSWER).await?;
    }
}
