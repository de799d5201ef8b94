//! A page of a server, without a client library.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The status and the body; `None` when nobody answers.
pub(crate) async fn get(address: &str, path: &str) -> Option<(u16, String)> {
    ask(address, path, "").await
}

/// The same with a token.
#[allow(dead_code, reason = "each test program uses its own part of this")]
pub(crate) async fn get_with(address: &str, path: &str, token: &str) -> Option<(u16, String)> {
    ask(address, path, &format!("authorization: Bearer {token}\r\n")).await
}

async fn ask(address: &str, path: &str, heads: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{heads}\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

/// Posts JSON; the status, `None` when nobody answers.
#[allow(dead_code, reason = "each test program uses its own part of this")]
pub(crate) async fn post(address: &str, path: &str, body: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}
