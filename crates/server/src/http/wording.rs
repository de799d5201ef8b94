//! Words for refusals that come from below HTTP. What cannot be read as a request reaches no route: hyper refuses it by itself,
//! with a status and nothing else. Such a head is exchanged here, on its way out, for one that has a problem as its body.
//!
//! Only a head that stands alone and that our own answers cannot have is exchanged: theirs all name the request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use uuid::Uuid;

use super::problem::{Kind, Problem};

/// A connection whose bare refusals get a body.
pub(super) struct Worded<S> {
    stream: S,
    /// What is to be sent instead of what was given.
    instead: Vec<u8>,
    sent: usize,
}

impl<S> Worded<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            instead: Vec::new(),
            sent: 0,
        }
    }
}

impl<S: AsyncWrite + Unpin> Worded<S> {
    fn poll_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.instead.len() {
            let rest = &self.instead[self.sent..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.sent += written,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Worded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

/// Not vectored: a head then comes in one piece.
impl<S: AsyncWrite + Unpin> AsyncWrite for Worded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_instead(context))?;
        let Some(worded) = worded(bytes) else {
            return Pin::new(&mut self.stream).poll_write(context, bytes);
        };
        (self.instead, self.sent) = (worded, 0);
        // What cannot be sent now is sent with the flush that follows.
        if let Poll::Ready(Err(error)) = self.poll_instead(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The answer with a body, when this is a bare refusal.
fn worded(bytes: &[u8]) -> Option<Vec<u8>> {
    let head = bytes
        .strip_prefix(b"HTTP/1.")?
        .strip_suffix(b"\r\n\r\n")
        .and_then(|head| std::str::from_utf8(head).ok())?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.get(2..5)?.parse().ok()?;
    // Our own answers name the request, and none of hyper's has more than these.
    let bare = |line: &str| {
        let name = line.split(':').next().unwrap_or_default();
        ["connection", "content-length", "date"].contains(&name.to_ascii_lowercase().as_str())
    };
    if !lines.all(bare) {
        return None;
    }
    let status = StatusCode::from_u16(status).ok()?;
    let (kind, words) = match status {
        StatusCode::BAD_REQUEST => (Kind::Malformed, "this is no request of HTTP/1.1"),
        StatusCode::URI_TOO_LONG => (Kind::HeadTooLarge, "the address is too long"),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
            Kind::HeadTooLarge,
            "the head of a request has at most 64 headers and 64 KiB",
        ),
        _ => return None,
    };
    let id = Uuid::now_v7();
    let status = kind.status();
    let body = Problem::new(kind, words).body(&id.to_string());
    let reason = status.canonical_reason().unwrap_or_default();
    let mut answer = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         connection: close\r\nx-request-id: {id}\r\n\r\n",
        status.as_u16(),
        body.len()
    )
    .into_bytes();
    answer.extend(body);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_refusal_is_exchanged() {
        let bare = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n";
        let answer = String::from_utf8(worded(bare).unwrap()).unwrap();
        assert!(answer.contains("urn:stationmaster:problem:malformed"), "{answer}");
        for own in [
            &b"HTTP/1.1 400 Bad Request\r\nx-request-id: 7\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 204 No Content\r\ndate: now\r\n\r\n",
            b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
            b"{\"detail\": \"HTTP/1.1 400 Bad Request\"}",
        ] {
            assert!(worded(own).is_none(), "{}", String::from_utf8_lossy(own));
        }
    }
}
