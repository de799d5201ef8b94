//! Events, as they happen.

use std::collections::VecDeque;

use futures::{Stream, StreamExt as _};
use reqwest::header::HeaderName;

use crate::Client;
use crate::error::{Error, Result};
use crate::wire::{Event, EventQuery, Hello, Reset};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What a listener is told.
#[derive(Debug, Clone)]
pub enum Told {
    /// From where on it hears.
    Hello(Hello),
    /// Something happened.
    Event(Event),
    /// Events were missed that are not kept any more.
    Reset(Reset),
}

/// Events, as they happen, until the server or the network ends it.
pub struct EventStream {
    bytes: std::pin::Pin<Box<dyn Stream<Item = reqwest::Result<Vec<u8>>> + Send>>,
    rest: Vec<u8>,
    ready: VecDeque<Told>,
}

impl Client {
    /// Listens from now on, or after a position that was heard before.
    pub async fn events(&self, query: &EventQuery, after: Option<i64>) -> Result<EventStream> {
        let last = after.map(|position| position.to_string());
        let call = self
            .get(&["events"])
            .query(query)
            .header(LAST_EVENT_ID, last.as_deref());
        let response = call.respond(None).await?;
        let bytes = response.bytes_stream().map(|part| part.map(|part| part.to_vec()));
        Ok(EventStream {
            bytes: Box::pin(bytes),
            rest: Vec::new(),
            ready: VecDeque::new(),
        })
    }
}

impl EventStream {
    /// The next thing told; `None` when the stream is over.
    pub async fn next(&mut self) -> Result<Option<Told>> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Ok(Some(told));
            }
            let Some(part) = self.bytes.next().await else {
                return Ok(None);
            };
            self.rest.extend(part?);
            while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.rest.drain(..end + 2).collect();
                self.ready.extend(read(&String::from_utf8_lossy(&block))?);
            }
        }
    }
}

/// Reads one block of the stream; a comment, which keeps the connection alive, is nothing.
fn read(block: &str) -> Result<Option<Told>> {
    let field = |name: &str| {
        let lines = block
            .lines()
            .filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':'));
        let text: Vec<&str> = lines.map(|text| text.strip_prefix(' ').unwrap_or(text)).collect();
        (!text.is_empty()).then(|| text.join("\n"))
    };
    let Some(data) = field("data") else {
        return Ok(None);
    };
    let wrong = |error: serde_json::Error| Error::Answer(error.to_string());
    let told = match field("event").as_deref() {
        Some("hello") => Told::Hello(serde_json::from_str(&data).map_err(wrong)?),
        Some("reset") => Told::Reset(serde_json::from_str(&data).map_err(wrong)?),
        _ => Told::Event(serde_json::from_str(&data).map_err(wrong)?),
    };
    Ok(Some(told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_the_stream_are_read_and_comments_are_nothing() {
        assert!(read(": heartbeat\n\n").unwrap().is_none());
        let hello = read("id: 7\nevent: hello\ndata: {\"position\": 7}\n\n").unwrap();
        assert!(
            matches!(hello, Some(Told::Hello(Hello { position: 7 }))),
            "{hello:?}"
        );
        let block = "id: 8\nevent: queue.retried\ndata: {\"position\": 8, \"at\": \"2026-03-01T12:00:00Z\",\n\
                     data: \"kind\": \"queue.retried\", \"workspace_id\": null, \"detail\": {}}\n\n";
        let event = read(block).unwrap();
        assert!(
            matches!(event, Some(Told::Event(Event { position: 8, .. }))),
            "{event:?}"
        );
        assert!(read("data: nothing of ours\n\n").is_err());
    }
}
