//! Bulk operations by filter: many small calls instead of a long one, each of which says where the next one goes on; and a preview.
//!
//! What matches is walked in the order of an index, a page at a time, and each page is changed by a few transactions. A call
//! stops after half a second or [`MOST`], whichever comes first, so no caller waits for long and a caller who goes away loses nothing.
//! A preview says when it was made, and whoever acts on it gives that time back: what came later is not swept away.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use jiff::Timestamp;
pub use stationmaster_wire::BulkAnswer;

use crate::db::{self, Database, Read as _};

/// The most that one call changes.
pub const MOST: u64 = 10_000;
/// The most that a preview counts.
pub const COUNTED: u64 = 100_000;
/// How long a call goes on before it lets another one do the rest.
const BUDGET: Duration = Duration::from_millis(400);
/// Things changed by one transaction.
pub(crate) const BATCH: usize = 1_000;
/// Things on a page: two transactions' worth, which go abreast, because it is the database's work and one connection uses one core.
const PAGE: i64 = 2_000;
/// Things read for a count at once.
const COUNT_BATCH: i64 = 10_000;
/// Things that a preview names.
const SAMPLE: usize = 5;

/// What a bulk operation is about, page by page.
pub(crate) trait Pages: Sync {
    /// What is on a page.
    type Item: Clone + Send + Sync;

    /// The page that follows on `after`; an empty one is behind the last.
    fn page(
        &self,
        database: &Database,
        after: Option<Self::Item>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Self::Item>, db::Error>> + Send;

    /// A place in the order, as callers carry it from one call to the next.
    fn place(item: &Self::Item) -> String;

    /// The same, read; `None` when it is no place.
    fn read(place: &str) -> Option<Self::Item>;

    /// What people know it by.
    fn name(item: &Self::Item) -> String;
}

/// Why a bulk operation stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Where it was to go on is no place.
    #[error("it is no place to go on from: give the `next` of the answer before, or nothing")]
    Place,
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// Goes through pages from a place on until there are no more or the call has done its share; `act` says how many of a page were
/// changed.
pub(crate) async fn walk<P: Pages, E: From<Error> + From<db::Error>, F: Future<Output = Result<usize, E>>>(
    database: &Database,
    pages: &P,
    from: Option<&str>,
    act: impl Fn(Vec<P::Item>) -> F,
) -> Result<BulkAnswer, E> {
    let mut done = answer(database, false).await?;
    let mut after = start::<P>(from)?;
    let (mut seen, began) = (0, Instant::now());
    loop {
        let page = pages.page(database, after.clone(), PAGE).await?;
        let Some(last) = page.last().cloned() else {
            return Ok(done);
        };
        seen += page.len() as u64;
        let changed = page.chunks(BATCH).map(|some| act(some.to_vec()));
        done.items += try_join_all(changed).await?.into_iter().sum::<usize>() as u64;
        if seen >= MOST || began.elapsed() >= BUDGET {
            done.more = true;
            done.next = Some(P::place(&last));
            return Ok(done);
        }
        after = Some(last);
    }
}

/// Counts, up to [`COUNTED`], and names a few.
pub(crate) async fn count<P: Pages>(database: &Database, pages: &P) -> Result<BulkAnswer, db::Error> {
    let mut counted = answer(database, true).await?;
    let (mut after, began) = (None, Instant::now());
    loop {
        let page = pages.page(database, after, COUNT_BATCH).await?;
        counted.items += page.len() as u64;
        if counted.sample.is_empty() {
            counted.sample = page.iter().take(SAMPLE).map(P::name).collect();
        }
        let Some(last) = page.last().cloned() else {
            return Ok(counted);
        };
        if counted.items >= COUNTED || began.elapsed() >= BUDGET {
            counted.more = true;
            return Ok(counted);
        }
        after = Some(last);
    }
}

fn start<P: Pages>(from: Option<&str>) -> Result<Option<P::Item>, Error> {
    let read = |place| P::read(place).ok_or(Error::Place);
    from.map(read).transpose()
}

async fn answer(database: &Database, dry_run: bool) -> Result<BulkAnswer, db::Error> {
    let now = sqlx::query_scalar::<_, jiff_sqlx::Timestamp>("select clock_timestamp()");
    let as_of: Timestamp = now.one(database).await?.to_jiff();
    Ok(BulkAnswer {
        items: 0,
        more: false,
        next: None,
        as_of,
        sample: Vec::new(),
        dry_run,
    })
}
