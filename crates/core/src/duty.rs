//! Duties: work that one server at a time does for all, held by a short lease.
//!
//! A duty is for economy: two servers doing it at once would waste effort, not break anything, because every write it
//! leads to is fenced by itself. Its token only grows.

use std::time::Duration;

use jiff::Timestamp;

use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::presence::Presence;

/// How long a duty is held without a renewal: longer than whoever has one rests. A holder that is dead is followed as soon as
/// its own lease has run out.
const LEASE: Duration = Duration::from_secs(45);

/// How often to ask again for a duty that another server has, where nobody waits for what it does.
pub(crate) const ELSEWHERE: Duration = Duration::from_secs(10);

/// A duty that this server holds now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    token: i64,
    /// How far the work has come, when it keeps count.
    pub(crate) position: Option<Timestamp>,
}

/// Takes or keeps the duty. `None`: another server has it, or this one has no standing.
pub(crate) async fn hold(
    database: &Database,
    presence: &Presence,
    name: &str,
) -> Result<Option<Held>, db::Error> {
    let Some(server) = presence.taker() else {
        return Ok(None);
    };
    let row = sqlx::query_as::<_, (i64, Option<jiff_sqlx::Timestamp>)>(statement!("duties/hold"))
        .bind(name)
        .bind(server)
        .bind(LEASE.as_secs_f64())
        .maybe(&database.keepers())
        .await?;
    Ok(row.map(|(token, position)| Held {
        token,
        position: position.map(jiff_sqlx::Timestamp::to_jiff),
    }))
}

/// Remembers how far the work has come.
pub(crate) async fn advance(
    database: &Database,
    name: &str,
    held: Held,
    position: Timestamp,
) -> Result<(), db::Error> {
    sqlx::query(statement!("duties/advance"))
        .bind(name)
        .bind(held.token)
        .bind(jiff_sqlx::Timestamp::from(position))
        .run(database)
        .await?;
    Ok(())
}
