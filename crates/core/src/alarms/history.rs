//! What happened to an alarm: failed tries of its occurrences, and what people and servers did to it. Reads only.

use jiff::Timestamp;
use serde::Serialize;
use stationmaster_wire::AlarmEvent;

use crate::columns::At;
use crate::db::{self, Database, Read as _, statement};
use crate::id::AlarmId;

/// A try that was not confirmed.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Try {
    /// Counted from 1.
    pub attempt: i32,
    /// When.
    #[sqlx(try_from = "At")]
    pub at: Timestamp,
    /// What kind of failure.
    pub class: String,
    /// The HTTP status.
    pub answer_status: Option<i32>,
    /// The beginning of the answer.
    pub answer: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

/// The failed tries of an occurrence, oldest first.
pub async fn tries(
    database: &Database,
    alarm: AlarmId,
    scheduled_for: Timestamp,
) -> Result<Vec<Try>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/tries"))
        .bind(alarm)
        .bind(jiff_sqlx::Timestamp::from(scheduled_for));
    query.all(database).await
}

/// What was done to an alarm, newest first; `before` is where the last page ended.
pub async fn history(
    database: &Database,
    alarm: AlarmId,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<AlarmEvent>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/history"))
        .bind(alarm)
        .bind(before.unwrap_or(i64::MAX))
        .bind(limit);
    query.all(database).await
}
