//! Answers kept for a while, so that a request repeated under its idempotency key is answered and not done again.
//!
//! The key is taken before the work begins, so two repeats at once do it once. A request that was cut off by a crash leaves
//! a key without an answer. Whether it was carried out nobody knows, so the key stays taken for as long as answers are kept.

use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::id::TokenId;

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Nobody had it: now it is ours, and the request may be carried out.
    New,
    /// The same request was answered before.
    Answered(Answer),
    /// The same request is being carried out now.
    UnderWay,
    /// The same request was cut off before its outcome was written down.
    Unknown,
    /// Another request had this key.
    Other,
}

/// An answer as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The media type of the body.
    pub kind: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Takes a key for a request, named by its hash.
pub async fn take(
    database: &Database,
    token: TokenId,
    key: &str,
    request: &[u8],
) -> Result<Taken, db::Error> {
    type Row = (bool, Vec<u8>, Option<i32>, Option<String>, Option<Vec<u8>>, bool);
    let query = sqlx::query_as::<_, Row>(statement!("answers/take"))
        .bind(token)
        .bind(key)
        .bind(request);
    let row = query.maybe(&database.own()).await?;
    Ok(match row {
        Some((true, ..)) => Taken::New,
        Some((_, hash, ..)) if hash != request => Taken::Other,
        Some((_, _, Some(status), kind, body, _)) => Taken::Answered(Answer {
            status: u16::try_from(status).unwrap_or(500),
            kind,
            body: body.unwrap_or_default(),
        }),
        Some((.., true)) => Taken::Unknown,
        // Or it was removed between two looks of one statement: as good as under way, the next repeat will tell.
        Some(_) | None => Taken::UnderWay,
    })
}

/// Keeps the answer.
pub async fn keep(database: &Database, token: TokenId, key: &str, answer: &Answer) -> Result<(), db::Error> {
    let query = sqlx::query(statement!("answers/keep"))
        .bind(token)
        .bind(key)
        .bind(i32::from(answer.status))
        .bind(&answer.kind)
        .bind(&answer.body);
    query.run(&database.own()).await?;
    Ok(())
}

/// Gives the key back: the request was not carried out, and may be tried again.
pub async fn give_back(database: &Database, token: TokenId, key: &str) -> Result<(), db::Error> {
    let query = sqlx::query(statement!("answers/give_back")).bind(token).bind(key);
    query.run(&database.own()).await?;
    Ok(())
}

/// Forgets answers that are older than a day. Answers how many.
pub async fn prune(database: &Database) -> Result<u64, db::Error> {
    sqlx::query(statement!("answers/prune"))
        .run(&database.own())
        .await
}
