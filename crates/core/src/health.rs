//! What can be seen of the database's health: facts, for somebody else to judge. Reads only, and locks nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::types::Json;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::db::{self, Database, Read as _, statement, within};

/// The database server and its settings.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Server {
    /// Its version in words.
    pub version: String,
    /// Its version as a number, such as 150018.
    pub version_number: i32,
    /// Is it a standby?
    pub read_only: bool,
    /// Settings by name, in PostgreSQL's own units.
    pub settings: Json<BTreeMap<String, String>>,
    /// Connections of clients now.
    pub connections: i64,
}

impl Server {
    /// A setting, or nothing when this server has none of that name.
    #[must_use]
    pub fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", String::as_str)
    }

    /// A setting that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> i64 {
        self.setting(name).parse().unwrap_or_default()
    }
}

/// Who holds the oldest snapshot.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Horizon {
    /// A session, a prepared transaction or a replication slot.
    pub kind: String,
    /// The process id, or the name.
    pub name: String,
    /// What the session calls itself.
    pub application: String,
    /// What it is about.
    pub state: String,
    /// Transactions since.
    pub age: Option<i32>,
    /// Seconds since, when known.
    pub seconds: Option<f64>,
    /// The first word of its query.
    pub doing: Option<String>,
}

/// One of our tables.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Rows that live, about.
    pub live: i64,
    /// Rows that are dead, about.
    pub dead: i64,
    /// Its size with its indexes.
    pub bytes: i64,
}

/// What the user of the connection may do.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Rights {
    /// The user.
    pub role: String,
    /// May it change the tables themselves?
    pub may_migrate: bool,
    /// Tables that it may not fully use.
    pub closed: Vec<String>,
}

/// Work that one server does for all.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Duty {
    /// What.
    pub name: String,
    /// The token of its holder: grows with every change of hands.
    pub epoch: i64,
    /// Does its lease hold?
    pub held: bool,
    /// The server that holds it, or held it last.
    pub server: Option<String>,
    /// Is that server alive?
    pub alive: bool,
}

/// What waits to be recovered or claimed.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct Claims {
    /// Claims whose lease is over for longer than recovery should take.
    pub overdue: i64,
    /// Items that could run, counted up to 1,000.
    pub ready: i64,
}

/// The clock of the database beside ours.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// How far the database is ahead of us, in seconds; behind when negative.
    pub ahead: f64,
    /// How uncertain that is: half of the time that the answer took.
    pub uncertain: Duration,
}

/// The database server and its settings, as a session finds them that sets none for itself, unlike ours.
pub async fn server(database: &Database) -> Result<Server, db::Error> {
    let mut connection = within(database.plain_options().connect()).await?;
    let query = sqlx::query_as(statement!("health/server")).fetch_one(&mut connection);
    let server = within(query).await;
    // It was for this question alone.
    let _ = connection.close().await;
    server
}

/// Who holds the oldest snapshot; nobody when there is none but ours.
pub async fn horizon(database: &Database) -> Result<Option<Horizon>, db::Error> {
    sqlx::query_as(statement!("health/horizon"))
        .maybe(&database.own())
        .await
}

/// Our tables, those with the most dead rows first.
pub async fn tables(database: &Database) -> Result<Vec<Table>, db::Error> {
    sqlx::query_as(statement!("health/tables"))
        .all(&database.own())
        .await
}

/// What the user of the connection may do.
pub async fn rights(database: &Database) -> Result<Rights, db::Error> {
    sqlx::query_as(statement!("health/rights"))
        .one(&database.own())
        .await
}

/// Work that one server does for all.
pub async fn duties(database: &Database) -> Result<Vec<Duty>, db::Error> {
    sqlx::query_as(statement!("health/duties"))
        .all(&database.own())
        .await
}

/// What waits to be recovered, or to be claimed.
pub async fn claims(database: &Database, grace: Duration) -> Result<Claims, db::Error> {
    let query = sqlx::query_as(statement!("health/claims")).bind(grace.as_secs_f64());
    query.one(&database.own()).await
}

/// The clock of the database beside ours: its answer lies somewhere between our question and its arrival.
pub async fn clock(database: &Database) -> Result<Clock, db::Error> {
    let (began, asked_at) = (Instant::now(), Timestamp::now());
    let query = sqlx::query_scalar::<_, jiff_sqlx::Timestamp>("select clock_timestamp()");
    let theirs = query.one(&database.own()).await?.to_jiff();
    let half = began.elapsed() / 2;
    let ahead = theirs.duration_since(asked_at).as_secs_f64() - half.as_secs_f64();
    Ok(Clock {
        ahead,
        uncertain: half,
    })
}

/// A workspace in which items wait although not all slots are taken.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Standstill {
    /// Its name.
    pub name: String,
    /// `paused`, `no slots` or `stuck`.
    pub why: String,
    /// For how long.
    pub seconds: i64,
}

/// Workspaces whose first item has been ready for a minute, for another reason than that all slots are taken.
pub async fn standstill(database: &Database) -> Result<Vec<Standstill>, db::Error> {
    sqlx::query_as(statement!("health/standstill"))
        .all(database)
        .await
}

/// An alarm that can never fire.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct DeadAlarm {
    /// Its name, its label, or its id.
    pub name: String,
    /// Whose it is.
    pub workspace: Option<String>,
    /// The reason.
    pub why: String,
}

/// Alarms that can never fire, at most a hundred.
pub async fn dead_alarms(database: &Database) -> Result<Vec<DeadAlarm>, db::Error> {
    sqlx::query_as(statement!("health/dead_alarms"))
        .all(database)
        .await
}
