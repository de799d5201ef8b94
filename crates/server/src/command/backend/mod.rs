//! What a command works on: a server by HTTP, or a database directly. Either way things come in the shape of the wire, so a
//! command is written once and prints the same; what differs is in the two arms of each method here, and nowhere else.
//!
//! Directly, everything is done under the name of whoever runs the command; through a server, under that of the token.

use anyhow::Result;
use stationmaster_client::Client;
use stationmaster_client::wire::Page;
use stationmaster_core::db::Database;
use stationmaster_core::locks::Locks;
use uuid::Uuid;

use super::arguments::id;
use crate::failure::Refusal;

mod alarms;
mod catalogue;
mod dispatchers;
mod executions;
mod operations;
mod queue;
mod signals;

pub(super) use operations::Freed;

/// Things on one page of a server, at most.
const PAGE: usize = 500;

/// What a command works on.
pub(super) enum Backend {
    /// The database itself.
    Database(Box<Direct>),
    /// A server.
    Api(Box<Client>),
}

/// The database itself.
pub(super) struct Direct {
    pub(super) database: Database,
    pub(super) locks: Locks,
}

/// As much of a list as was asked for.
pub(super) struct Listed<T> {
    /// The things.
    pub(super) rows: Vec<T>,
    /// Where to go on; none: this was all.
    pub(super) next: Option<String>,
}

impl<T> Listed<T> {
    /// Reads page after page until there is enough.
    async fn read(
        limit: usize,
        from: Option<&str>,
        mut page: impl AsyncFnMut(usize, Option<String>) -> Result<(Vec<T>, Option<String>)>,
    ) -> Result<Self> {
        let (mut rows, mut next) = (Vec::new(), from.map(str::to_owned));
        loop {
            let size = (limit - rows.len()).min(PAGE);
            let (more, after) = page(size, next).await?;
            rows.extend(more);
            next = after;
            if next.is_none() || rows.len() >= limit {
                return Ok(Self { rows, next });
            }
        }
    }
}

/// Cuts what was read one row longer than asked for: the rows, and the position of the last when there is more.
fn cut<T>(mut rows: Vec<T>, limit: usize, position: impl Fn(&T) -> String) -> (Vec<T>, Option<String>) {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().map(position).filter(|_| more);
    (rows, next)
}

/// A page of a server, as a part of a list.
fn told<T>(page: Page<T>) -> (Vec<T>, Option<String>) {
    (page.items, page.next_cursor)
}

/// Where a list goes on, directly: the last thing of the page before.
fn place(text: Option<String>) -> Result<Option<Uuid>> {
    place_by(text, id::<Uuid>)
}

/// The same for lists that do not go by an id.
fn place_by<T>(text: Option<String>, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>> {
    let read = |text: String| {
        let advice = "Give what the list before said, or leave it out";
        read(&text).map_err(|error| Refusal::usage(error, advice).into())
    };
    text.map(read).transpose()
}

/// A limit as the core wants it.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A size of a page as the wire wants it.
fn size(limit: usize) -> Option<u32> {
    u32::try_from(limit).ok()
}
