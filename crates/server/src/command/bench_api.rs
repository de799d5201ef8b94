//! `stationmaster bench api`: how long the API's lists take beside a million rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use stationmaster_bench::lists::{self, Record};
use stationmaster_client::wire::{
    ExecutionQuery, ExecutionStatus, ItemStatus, OverviewQuery, Page, QueueQuery,
};
use stationmaster_client::{Client, Paged};
use stationmaster_core::access::{self, NewToken, Role};
use stationmaster_core::db::Database;
use stationmaster_core::id::WorkspaceId;
use stationmaster_core::session::Scope;
use tokio::net::TcpListener;

use super::Context;
use super::bench::{private_postgres, table};
use crate::wiring;

/// How much, and how often.
#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    /// Rows to list
    #[arg(long, default_value_t = 1_000_000)]
    rows: i64,
    /// Requests of each kind
    #[arg(long, default_value_t = 100)]
    requests: usize,
}

pub(crate) async fn run(args: &ApiArgs, context: &Context) -> Result<()> {
    let mut config = context.settings()?.config;
    // Nothing is dispatched: the rows stay as they are while they are listed.
    config.executions_enabled = false;
    let server = private_postgres(&config).await?;
    let database = Database::new(&server.url("postgres"), config.database_pool)?
        .with_requests(config.http.database_pool);
    database.migrate().await?;
    let bar = context.format.progress(args.rows.unsigned_abs(), "Making rows");
    let record = lists::make(&database, args.rows, |done| bar.set_position(done.unsigned_abs())).await?;
    bar.finish_and_clear();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let running = wiring::start(&Arc::new(config), database.clone(), listener).await?;
    let address = format!("http://{}", running.address);
    let all = client(&database, &address, Scope::All).await?;
    let scoped = client(&database, &address, Scope::Only(vec![WorkspaceId(record.small)])).await?;
    let results = measure(args.requests, &record, &all, &scoped).await?;
    context.print(&json!({ "api": results }), table)?;
    running.shut_down(Duration::from_secs(5)).await?;
    database.pool().close().await;
    tokio::task::spawn_blocking(move || server.stop()).await?;
    Ok(())
}

async fn client(database: &Database, address: &str, scope: Scope) -> Result<Client> {
    let new = NewToken {
        name: format!("bench {scope:?}").chars().take(60).collect(),
        role: Role::Viewer,
        workspaces: scope.limited().map(|ids| ids.iter().map(|id| id.0).collect()),
        expires_at: None,
    };
    let (_, secret) = access::create(database, &new, "bench").await?;
    Ok(Client::builder().token(secret.expose()).build(address)?)
}

async fn measure(requests: usize, record: &Record, all: &Client, scoped: &Client) -> Result<Value> {
    let queue = QueueQuery::default;
    let executions = ExecutionQuery::default;
    let days_ago = |days: i64| Timestamp::now() - jiff::SignedDuration::from_hours(24 * days);
    let status = |status| QueueQuery {
        status: Some(status),
        ..queue()
    };
    let of = |workspace| QueueQuery {
        workspace_id: Some(workspace),
        ..queue()
    };
    let mut results = serde_json::Map::new();
    let queues = [
        ("queue", all, queue()),
        ("queue_pending", all, status(ItemStatus::Pending)),
        ("queue_failed", all, status(ItemStatus::Failed)),
        ("queue_dispatched", all, status(ItemStatus::Dispatched)),
        ("queue_of_large_workspace", all, of(record.large.into())),
        ("queue_of_small_workspace", all, of(record.small.into())),
        (
            "queue_search",
            all,
            QueueQuery {
                search: Some("c4ca4238a0b923820dcc509a6f75849b".to_owned()),
                ..queue()
            },
        ),
        (
            "queue_of_a_day",
            all,
            QueueQuery {
                created_after: Some(days_ago(4)),
                created_before: Some(days_ago(3)),
                ..queue()
            },
        ),
        ("queue_scoped", scoped, queue()),
    ];
    for (name, client, query) in queues {
        let times = time_pages(requests, client, query, Client::queue).await?;
        results.insert(name.to_owned(), times);
    }
    let lists = [
        ("executions", all, executions()),
        (
            "executions_failed",
            all,
            ExecutionQuery {
                status: Some(ExecutionStatus::Failed),
                ..executions()
            },
        ),
        (
            "executions_of_small_workspace",
            all,
            ExecutionQuery {
                workspace_id: Some(record.small.into()),
                ..executions()
            },
        ),
        (
            "executions_ended_on_a_day",
            all,
            ExecutionQuery {
                completed_after: Some(days_ago(4)),
                completed_before: Some(days_ago(3)),
                ..executions()
            },
        ),
        ("executions_scoped", scoped, executions()),
    ];
    for (name, client, query) in lists {
        let times = time_pages(requests, client, query, Client::executions).await?;
        results.insert(name.to_owned(), times);
    }
    for (name, client) in [("overview", all), ("overview_scoped", scoped)] {
        let mut times = Vec::new();
        for _ in 0..requests.min(20) {
            let began = Instant::now();
            client.overview(&OverviewQuery::default()).await?;
            times.push(began.elapsed());
        }
        results.insert(name.to_owned(), percentiles(times));
    }
    Ok(Value::Object(results))
}

/// Deeper with every request, and from the top again at the end.
async fn time_pages<Q: Paged, T>(
    requests: usize,
    client: &Client,
    mut query: Q,
    read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
) -> Result<Value> {
    let mut times = Vec::new();
    for _ in 0..requests {
        let began = Instant::now();
        let page = read(client, &query).await?;
        times.push(began.elapsed());
        *query.cursor() = page.next_cursor;
    }
    Ok(percentiles(times))
}

/// In milliseconds.
fn percentiles(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1000.0;
    json!({ "p50": at(50), "p95": at(95), "max": at(100) })
}
