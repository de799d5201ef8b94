//! Events, as they happen: one stream as the server gives it, and one that comes back by itself and misses nothing.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use reqwest::header::HeaderName;

use crate::Client;
use crate::error::{Error, Result};
use crate::retry::Retries;
use crate::wire::{Event, EventQuery, Hello, Reset};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// A server shows every fifteen seconds that it lives; one that is silent for so long is not there any more.
const SILENCE: Duration = Duration::from_secs(50);
/// How we come back to a server that is away: for ever, but not all at once.
const COME_BACK: Retries = Retries {
    tries: u32::MAX,
    base: Duration::from_millis(250),
    cap: Duration::from_secs(15),
    deadline: Duration::MAX,
};

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
    /// The next thing told; `None` when the stream is over, or the server has gone silent.
    pub async fn next(&mut self) -> Result<Option<Told>> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Ok(Some(told));
            }
            let Ok(part) = tokio::time::timeout(SILENCE, self.bytes.next()).await else {
                return Ok(None);
            };
            let Some(part) = part else { return Ok(None) };
            self.rest.extend(part?);
            while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.rest.drain(..end + 2).collect();
                self.ready.extend(read(&String::from_utf8_lossy(&block))?);
            }
        }
    }
}

/// Events that go on when the connection does not: after an interruption they are heard from where they ended. Only what
/// coming back cannot mend ends it, such as a token that was revoked.
pub struct Listening {
    client: Client,
    query: EventQuery,
    stream: Option<EventStream>,
    /// Everything up to here was heard.
    position: Option<i64>,
    /// Tries to come back since something was heard.
    tried: u32,
}

impl Client {
    /// Listens from now on, or after a position that was heard before, and comes back by itself.
    #[must_use]
    pub fn listen(&self, query: EventQuery, after: Option<i64>) -> Listening {
        Listening {
            client: self.clone(),
            query,
            stream: None,
            position: after,
            tried: 0,
        }
    }
}

impl Listening {
    /// Where we stand: give it to [`Client::listen`] to go on after it, also in another process.
    #[must_use]
    pub fn position(&self) -> Option<i64> {
        self.position
    }

    /// The next thing told, however long it takes.
    pub async fn next(&mut self) -> Result<Told> {
        loop {
            match self.hear().await {
                Ok(Some(told)) => {
                    self.tried = 0;
                    self.position = Some(match &told {
                        Told::Hello(hello) => hello.position,
                        Told::Event(event) => event.position,
                        Told::Reset(reset) => reset.newest,
                    });
                    return Ok(told);
                }
                Ok(None) => {}
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(error),
            }
            self.stream = None;
            self.tried = self.tried.saturating_add(1);
            tokio::time::sleep(COME_BACK.backoff(self.tried, rand::random())).await;
        }
    }

    /// The same as a stream; an error is its last.
    pub fn into_stream(self) -> impl Stream<Item = Result<Told>> {
        stream::unfold(Some(self), |listening| async move {
            let mut listening = listening?;
            match listening.next().await {
                Ok(told) => Some((Ok(told), Some(listening))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn hear(&mut self) -> Result<Option<Told>> {
        if self.stream.is_none() {
            self.stream = Some(self.client.events(&self.query, self.position).await?);
        }
        match &mut self.stream {
            Some(stream) => stream.next().await,
            None => Ok(None),
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
