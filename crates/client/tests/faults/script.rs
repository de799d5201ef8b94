//! A server that does as it is told: it answers, refuses, or cuts the connection, one line of the script a request, and
//! remembers what it was asked. What a real server only does when it fails.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use stationmaster_client::{Client, Retries};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What to do with a request.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    /// Answer with this status, these headers and this body.
    Say(u16, &'static str, String),
    /// Read the request and go away without a word: whether it was carried out is not known.
    Hang,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

pub(crate) struct Script {
    pub(crate) client: Client,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Script {
    /// A server that plays this, and a client of it that does not wait for long.
    pub(crate) async fn new(lines: Vec<Line>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(play(listener, lines, Arc::clone(&asked)));
        let retries = Retries {
            base: std::time::Duration::from_millis(10),
            ..Retries::default()
        };
        let client = Client::builder().token("smt_test").retries(retries);
        Self {
            client: client.build(&format!("http://{address}")).unwrap(),
            asked,
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn header(&self, name: &str) -> Vec<Option<String>> {
        let asked = self.asked();
        asked
            .iter()
            .map(|asked| asked.headers.get(name).cloned())
            .collect()
    }
}

/// One connection a line, so that a cut takes nothing else with it.
async fn play(listener: TcpListener, lines: Vec<Line>, asked: Arc<Mutex<Vec<Asked>>>) {
    for line in lines {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let request = read(&mut stream).await;
        asked.lock().unwrap().push(request);
        if let Line::Say(status, headers, body) = line {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Asked {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    Asked {
        method,
        path,
        headers,
        body: String::from_utf8(body).unwrap(),
    }
}

/// A refusal, as the server writes one.
pub(crate) fn problem(status: u16, name: &str) -> String {
    serde_json::json!({ "type": format!("urn:stationmaster:problem:{name}"), "title": "a title", "status": status,
        "detail": "the words", "request_id": "r-1", "errors": [{ "field": "/name", "detail": "it is empty" }] })
    .to_string()
}
