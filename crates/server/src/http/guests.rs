//! Who is connected, and who goes when there is no room: whoever has kept a connection the longest without asking anything, or
//! without reading what was answered. So nobody can take all the room by sitting in it, and whoever asks whether this server lives
//! is let in.
//!
//! A listener of events asks for nothing and is not idle; streams have a limit of their own.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

/// So long may a connection take none of what is written to it.
const UNREAD: Duration = Duration::from_secs(10);

/// Everybody who is connected.
#[derive(Clone, Default)]
pub(super) struct Guests(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    next: u64,
    guests: HashMap<u64, Entry>,
}

struct Entry {
    /// None: a request of it is being carried out.
    idle_since: Option<Instant>,
    out: CancellationToken,
}

/// One of them, until it is dropped.
pub(super) struct Guest {
    guests: Guests,
    id: u64,
    /// It has to go.
    pub(super) out: CancellationToken,
}

impl Guests {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody came.
    pub(super) fn enter(&self) -> Guest {
        let mut book = self.lock();
        let (id, out) = (book.next, CancellationToken::new());
        book.next += 1;
        let entry = Entry {
            idle_since: Some(Instant::now()),
            out: out.clone(),
        };
        book.guests.insert(id, entry);
        Guest {
            guests: self.clone(),
            id,
            out,
        }
    }

    /// Shows the door to as many as are given of those who have been idle the longest, if anybody is.
    pub(super) fn make_room(&self, count: usize) {
        let book = self.lock();
        let waiting = book.guests.values().filter(|entry| !entry.out.is_cancelled());
        let mut idle: Vec<_> = waiting
            .filter_map(|entry| Some((entry.idle_since?, &entry.out)))
            .collect();
        idle.sort_unstable_by_key(|(since, _)| *since);
        idle.iter().take(count).for_each(|(_, out)| out.cancel());
    }
}

impl Guest {
    /// A request of it is carried out from now on; or is over.
    pub(super) fn is_busy(&self, busy: bool) {
        if let Some(entry) = self.guests.lock().guests.get_mut(&self.id) {
            entry.idle_since = (!busy).then(Instant::now);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.guests.lock().guests.remove(&self.id);
    }
}

/// A connection that ends when nothing of what is written to it is taken for [`UNREAD`].
pub(super) struct Impatient<S> {
    stream: S,
    /// Since it took nothing more.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, until: None }
    }

    fn bounded<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.until = None;
            return poll;
        }
        let until = self
            .until
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(UNREAD)));
        ready!(until.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "what was written was not read",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(context, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded(context, poll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_idle_the_longest_goes_and_nobody_who_is_served() {
        let guests = Guests::default();
        let (served, first, second) = (guests.enter(), guests.enter(), guests.enter());
        served.is_busy(true);
        guests.make_room(1);
        assert!(first.out.is_cancelled() && !second.out.is_cancelled() && !served.out.is_cancelled());
        guests.make_room(1);
        assert!(second.out.is_cancelled() && !served.out.is_cancelled());
        guests.make_room(1);
        assert!(!served.out.is_cancelled());
        served.is_busy(false);
        guests.make_room(1);
        assert!(served.out.is_cancelled());
    }
}
