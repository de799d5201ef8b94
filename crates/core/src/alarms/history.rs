//! What happened to an alarm: failed tries of its occurrences, and what people and servers did to it. Reads only.

use jiff::Timestamp;
use serde::Serialize;

use crate::db::{self, Database, statement, within};
use crate::id::AlarmId;

/// A try that was not confirmed.
#[derive(Debug, Clone, Serialize)]
pub struct Try {
    /// Counted from 1.
    pub attempt: i32,
    /// When.
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
    type Row = (
        i32,
        jiff_sqlx::Timestamp,
        String,
        Option<i32>,
        Option<String>,
        Option<String>,
    );
    let query = sqlx::query_as(statement!("alarms/tries"))
        .bind(alarm)
        .bind(jiff_sqlx::Timestamp::from(scheduled_for));
    let mut session = database.session().await?;
    let rows: Vec<Row> = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    let tries = rows
        .into_iter()
        .map(|(attempt, at, class, answer_status, answer, error)| Try {
            attempt,
            at: at.to_jiff(),
            class,
            answer_status,
            answer,
            error,
        });
    Ok(tries.collect())
}

/// Something that was done to an alarm.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub event: String,
    /// By whom.
    pub actor: String,
    /// More words.
    pub detail: Option<String>,
}

/// What was done to an alarm, newest first, each with its number; `before` is where the last page ended.
pub async fn history(
    database: &Database,
    alarm: AlarmId,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<(i64, Event)>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/history"))
        .bind(alarm)
        .bind(before.unwrap_or(i64::MAX))
        .bind(limit);
    let mut session = database.session().await?;
    let rows: Vec<(i64, jiff_sqlx::Timestamp, String, String, Option<String>)> =
        within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    let event = |(id, at, event, actor, detail): (i64, jiff_sqlx::Timestamp, _, _, _)| {
        let at = at.to_jiff();
        let event = Event {
            at,
            event,
            actor,
            detail,
        };
        (id, event)
    };
    Ok(rows.into_iter().map(event).collect())
}

/// What was done to an alarm, oldest first.
pub async fn events(database: &Database, alarm: AlarmId) -> Result<Vec<Event>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/events")).bind(alarm);
    let mut session = database.session().await?;
    let rows: Vec<(jiff_sqlx::Timestamp, String, String, Option<String>)> =
        within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    let events = rows.into_iter().map(|(at, event, actor, detail)| Event {
        at: at.to_jiff(),
        event,
        actor,
        detail,
    });
    Ok(events.collect())
}
