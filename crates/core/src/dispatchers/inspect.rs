//! What people see of dispatchers. Reads only.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{DispatcherId, Epoch};
use crate::db::{self, Database, statement, within};
use crate::id::{ServerId, WorkspaceId};

/// A dispatcher as people see it.
#[derive(Debug, Clone, Serialize)]
pub struct Dispatcher {
    /// Its id.
    pub id: DispatcherId,
    /// Its project.
    pub project: String,
    /// Its task queue.
    pub task_queue: String,
    /// `owned`, or `vacant` when no lease holds.
    pub state: &'static str,
    /// Who owns it, now or last.
    pub owner: Option<ServerId>,
    /// What the owner is called.
    pub owner_name: Option<String>,
    /// Its epoch.
    pub epoch: Epoch,
    /// Until when the lease holds.
    pub lease_until: Option<Timestamp>,
    /// Where its run is.
    pub engine: Option<String>,
    /// The first run of this epoch.
    pub run_id: Option<String>,
    /// When its owner took it.
    pub taken_at: Option<Timestamp>,
    /// When its run was started.
    pub run_started_at: Option<Timestamp>,
    /// The last heartbeat, when heartbeats are kept in PostgreSQL.
    pub heartbeat_at: Option<Timestamp>,
    /// Signals that wait, counted up to 1,000.
    pub waiting: i64,
    /// Since when the oldest of them has waited.
    pub oldest_waiting_at: Option<Timestamp>,
    /// The servers that stand by, the owner among them.
    pub servers: Option<Box<RawValue>>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: DispatcherId,
    project: String,
    task_queue: String,
    owner: Option<ServerId>,
    owner_name: Option<String>,
    epoch: Epoch,
    lease_until: Option<jiff_sqlx::Timestamp>,
    owned: bool,
    engine: Option<String>,
    run_id: Option<String>,
    taken_at: Option<jiff_sqlx::Timestamp>,
    run_started_at: Option<jiff_sqlx::Timestamp>,
    waiting: i64,
    oldest_waiting_at: Option<jiff_sqlx::Timestamp>,
    heartbeat_at: Option<jiff_sqlx::Timestamp>,
    servers: String,
}

impl From<Row> for Dispatcher {
    fn from(row: Row) -> Self {
        let time = |time: Option<jiff_sqlx::Timestamp>| time.map(jiff_sqlx::Timestamp::to_jiff);
        Self {
            id: row.id,
            project: row.project,
            task_queue: row.task_queue,
            state: if row.owned { "owned" } else { "vacant" },
            owner: row.owner,
            owner_name: row.owner_name,
            epoch: row.epoch,
            lease_until: time(row.lease_until),
            engine: row.engine,
            run_id: row.run_id,
            taken_at: time(row.taken_at),
            run_started_at: time(row.run_started_at),
            heartbeat_at: time(row.heartbeat_at),
            waiting: row.waiting,
            oldest_waiting_at: time(row.oldest_waiting_at),
            servers: RawValue::from_string(row.servers).ok(),
        }
    }
}

/// The dispatchers there are, of a project or all.
pub async fn list(
    database: &Database,
    project: Option<&str>,
    limit: i64,
) -> Result<Vec<Dispatcher>, db::Error> {
    let which = Which {
        project,
        ..Which::default()
    };
    select(database, &which, limit).await
}

/// Which dispatchers; every field that is given must match.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which<'a> {
    /// Only this one.
    pub only: Option<&'a DispatcherId>,
    /// Of this project.
    pub project: Option<&'a str>,
    /// Of projects of these workspaces.
    pub among: Option<&'a [WorkspaceId]>,
    /// After this one: where the last page ended.
    pub after: Option<&'a str>,
}

/// One dispatcher.
pub async fn show(database: &Database, id: &DispatcherId) -> Result<Option<Dispatcher>, db::Error> {
    let which = Which {
        only: Some(id),
        ..Which::default()
    };
    Ok(select(database, &which, 1).await?.into_iter().next())
}

/// Dispatchers in the order of their ids.
pub async fn select(
    database: &Database,
    which: &Which<'_>,
    limit: i64,
) -> Result<Vec<Dispatcher>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("dispatchers/list"))
        .bind(which.only)
        .bind(which.project)
        .bind(limit)
        .bind(which.among)
        .bind(which.after)
        .persistent(false);
    let rows: Vec<Row> = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(rows.into_iter().map(Dispatcher::from).collect())
}

/// Something that happened to a dispatcher: `fresh`, `takeover`, `handover` (taken after a hand-over), `handed_over`,
/// `server_evicted`, `run_terminated`, `heartbeat_removed` or `released`.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Event {
    /// Its number; grows.
    pub id: i64,
    /// When.
    #[sqlx(try_from = "jiff_sqlx::Timestamp")]
    pub at: Timestamp,
    /// To which dispatcher.
    pub dispatcher_id: DispatcherId,
    /// What.
    pub event: String,
    /// Under which epoch.
    pub epoch: Option<Epoch>,
    /// Which server it is about.
    pub server_id: Option<ServerId>,
    /// Which run it is about.
    pub run_id: Option<String>,
    /// Who did it: a server, or a person.
    pub actor: String,
    /// More, as a JSON object.
    #[sqlx(try_from = "String")]
    pub detail: Detail,
}

/// JSON as it was written.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Detail(Box<RawValue>);

impl Detail {
    /// The JSON.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl TryFrom<String> for Detail {
    type Error = serde_json::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        RawValue::from_string(text).map(Self)
    }
}

/// What happened, newest first: to one dispatcher or to all.
pub async fn events(
    database: &Database,
    dispatcher: Option<&DispatcherId>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Event>, db::Error> {
    let query = sqlx::query_as(statement!("dispatchers/events"))
        .bind(dispatcher)
        .bind(before.unwrap_or(i64::MAX))
        .bind(limit);
    let mut session = database.session().await?;
    let events = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(events)
}
