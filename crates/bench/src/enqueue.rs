//! What an enqueue costs: one item a transaction from many connections, beside a bare insert of the same width, in turns. In
//! each of the states that a queue can be in, because who rings whom depends on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use sqlx::{Connection as _, PgConnection};
use stationmaster_core::db::Database;
use stationmaster_core::executions::Settings;
use stationmaster_core::observe::Metrics;
use stationmaster_core::station::Station;
use uuid::Uuid;

use crate::fixture::{Load, load_items, make_workspaces, rest, wipe};
use crate::run::{Where, executions, start_servers, stop_servers};
use crate::scenario::Progress;

/// How long a turn lasts, and how many there are.
const TURN: Duration = Duration::from_secs(2);
const TURNS: usize = 3;
/// Statements on a connection before the clock runs.
const WARM: usize = 10;

/// How the queue stands.
#[derive(Debug, Clone, Copy)]
enum State {
    /// No server is there.
    Asleep,
    /// A server is there, and the workspace has no free slot.
    Full,
    /// A server is there, and the workspace is paused.
    Paused,
    /// A server starts what comes.
    Busy,
}

const STATES: [(&str, State); 4] = [
    ("asleep", State::Asleep),
    ("full", State::Full),
    ("paused", State::Paused),
    ("busy", State::Busy),
];

/// What was measured in one state.
#[derive(Debug, Serialize)]
pub struct Enqueues {
    /// How the queue stood.
    pub state: &'static str,
    /// Connections.
    pub clients: usize,
    /// Had each an idempotency key?
    pub with_key: bool,
    /// Enqueues a second.
    pub per_second: f64,
    /// Bare inserts a second.
    pub bare_per_second: f64,
    /// Of the bare figure.
    pub share_of_bare: f64,
}

const BARE_TABLE: &str = "
    drop table if exists bare_items;
    create table bare_items (id uuid primary key, seq bigint generated always as identity, workspace_id uuid not null,
        workflow_definition_id uuid not null, version_id uuid, input jsonb not null, priority integer not null default 0,
        run_at timestamptz, idempotency_key text, traceparent text, correlation_id text,
        enqueued_by text not null default session_user, created_at timestamptz not null default now());
    create unique index on bare_items (workspace_id, idempotency_key) where idempotency_key is not null";
const BARE: &str =
    "insert into bare_items (id, workspace_id, workflow_definition_id, version_id, input, idempotency_key)
     values (stationmaster.new_id(), $1, $2, $2, '{\"order\": 1}', $3) returning id";
const ENQUEUE: &str =
    "select stationmaster.enqueue_execution($1, $2, '{\"order\": 1}', idempotency_key => $3)";

/// Measures every state with few and with many clients.
pub async fn enqueue(url: &str, settings: &Settings, progress: &mut dyn Progress) -> Result<Vec<Enqueues>> {
    let mut all = Vec::new();
    for (name, state) in STATES {
        for (clients, with_key) in [(16, false), (16, true), (64, false)] {
            progress.part(&format!("{name}, {clients} clients"), TURNS);
            let (ours, bare) = in_state(url, state, clients, with_key, settings, progress).await?;
            all.push(Enqueues {
                state: name,
                clients,
                with_key,
                per_second: ours,
                bare_per_second: bare,
                share_of_bare: ours / bare,
            });
        }
    }
    Ok(all)
}

async fn in_state(
    url: &str,
    state: State,
    clients: usize,
    with_key: bool,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<(f64, f64)> {
    let database = Database::new(url, 4)?;
    wipe(&database).await?;
    sqlx::raw_sql(BARE_TABLE).execute(&database.pool()).await?;
    let (limit, work) = match state {
        State::Full => (1, Duration::from_hours(1)),
        State::Asleep | State::Paused | State::Busy => (1_000, Duration::ZERO),
    };
    let load = Load {
        work,
        ..Load::of(vec![limit], 1)
    };
    make_workspaces(&database, &load).await?;
    let stations = servers(url, state, settings).await?;
    if matches!(state, State::Full) {
        load_items(&database, &load, |_| {}).await?;
    }
    if matches!(state, State::Paused) {
        sqlx::raw_sql("update stationmaster.workspaces set paused = true")
            .execute(&database.pool())
            .await?;
    }
    let place: (Uuid, Uuid) =
        sqlx::query_as("select workspace_id, id from stationmaster.workflow_definitions")
            .fetch_one(&database.pool())
            .await?;
    rest(&database).await?;
    let (mut ours, mut bare) = (0.0, 0.0);
    for turn in 1..=TURNS {
        bare += turn_of(url, BARE, clients, place, with_key).await?;
        ours += turn_of(url, ENQUEUE, clients, place, with_key).await?;
        progress.at(turn);
    }
    stop_servers(&stations).await;
    let turns = f64::from(u32::try_from(TURNS)?);
    Ok((ours / turns, bare / turns))
}

async fn servers(url: &str, state: State, settings: &Settings) -> Result<Vec<Station>> {
    let servers = usize::from(!matches!(state, State::Asleep));
    let metrics = Arc::new(Metrics::new());
    start_servers(url, servers, &executions(settings), &Where::Embedded, &metrics).await
}

/// The statement again and again from every client, each time in a transaction of its own. Answers how often a second.
async fn turn_of(
    url: &str,
    statement: &'static str,
    clients: usize,
    place: (Uuid, Uuid),
    with_key: bool,
) -> Result<f64> {
    let mut connections = Vec::with_capacity(clients);
    for _ in 0..clients {
        let mut connection = PgConnection::connect(url).await?;
        // PostgreSQL plans the first few anew each time; applications keep their connections.
        for _ in 0..WARM {
            enqueue_once(&mut connection, statement, place, with_key).await?;
        }
        connections.push(connection);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let clients = connections.into_iter().map(|mut connection| {
        let is_over = Arc::clone(&is_over);
        tokio::spawn(async move {
            let mut done = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                enqueue_once(&mut connection, statement, place, with_key).await?;
                done += 1;
            }
            connection.close().await?;
            anyhow::Ok(done)
        })
    });
    let clients: Vec<_> = clients.collect();
    tokio::time::sleep(TURN).await;
    is_over.store(true, Ordering::Relaxed);
    let mut done = 0;
    for client in clients {
        done += client.await??;
    }
    Ok(f64::from(done) / began.elapsed().as_secs_f64())
}

async fn enqueue_once(
    connection: &mut PgConnection,
    statement: &'static str,
    place: (Uuid, Uuid),
    with_key: bool,
) -> Result<()> {
    let key = with_key.then(|| Uuid::now_v7().to_string());
    let query = sqlx::query(statement).bind(place.0).bind(place.1).bind(key);
    query.execute(connection).await?;
    Ok(())
}
