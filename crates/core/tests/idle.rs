//! With nothing to do nothing is written to the queue or about alarms, and nothing is said. A program of its own, because it listens to
//! everything that is logged.

#![allow(
    clippy::unwrap_used,
    reason = "what fails fails the test, and the panic says where"
)]

mod common;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::PgConnection;
use stationmaster_core::alarms;
use stationmaster_core::executions::Settings;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use common::{NOOP, Server, Testbed, eventually};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// What was said since the last time.
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Rows written to each table of the queue, by PostgreSQL's own count. What servers say of themselves is no part of it:
/// heartbeats, duties, attention, and what was counted of minutes that are over.
async fn writes(connection: &mut PgConnection) -> Vec<(String, i64)> {
    let query = "select relname::text, (n_tup_ins + n_tup_upd + n_tup_del)::bigint
                 from pg_stat_user_tables
                 where schemaname in ('stationmaster', 'stationmaster_internal') and relname not in ('servers', 'server_names', 'duties', 'attention', 'history_minutes', 'history_servers')
                 order by relname";
    sqlx::query_as(query).fetch_all(connection).await.unwrap()
}

fn brisk_alarms() -> alarms::Settings {
    alarms::Settings {
        tick: Duration::from_millis(50),
        ..alarms::Settings::default()
    }
}

/// A connection that ends reports what it has written; so nobody else may be connected when the writes are read.
async fn alone(connection: &mut PgConnection) {
    let others = "select count(*) from pg_stat_activity
                  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'";
    let mut nobody = async || {
        sqlx::query_scalar::<_, i64>(others)
            .fetch_one(&mut *connection)
            .await
            .unwrap()
            == 0
    };
    eventually("all others have disconnected", async || nobody().await).await;
}

#[tokio::test]
async fn an_empty_queue_writes_nothing_and_says_nothing() {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("stationmaster_core=info"))
        .with_writer(log.clone())
        .with_ansi(false)
        .init();
    let testbed = Testbed::new().await;
    let mut observer = testbed.connection().await;
    let settings = Settings {
        poll_interval: Duration::from_millis(50),
        ..Settings::default()
    };

    // First some work, so that the queue is empty because it was emptied, and the log is known to be heard.
    let tenant = testbed.tenant(2, NOOP).await;
    let server = Server::start(&testbed.url, settings.clone()).await;
    let alarms = Server::start_alarms(&testbed.url, brisk_alarms()).await;
    testbed.enqueue_many(tenant, 5).await;
    testbed.finishes(5).await;
    server.stop().await;
    alarms.stop().await;
    assert!(log.take().contains("Dispatched execution"), "the log is heard");
    testbed.pool().close().await;
    alone(&mut observer).await;
    let before = writes(&mut observer).await;
    assert!(
        before
            .iter()
            .any(|(table, rows)| table == "queue_pending" && *rows > 0),
        "writes are seen: {before:?}"
    );

    // Then some dozens of polls, and several rounds of every other task. A line about the start itself is no noise.
    let server = Server::start(&testbed.url, settings).await;
    let alarms = Server::start_alarms(&testbed.url, brisk_alarms()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    log.take();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let said = log.take();
    server.stop().await;
    alarms.stop().await;
    alone(&mut observer).await;
    assert_eq!(
        writes(&mut observer).await,
        before,
        "something was written to the queue"
    );
    assert_eq!(said, "", "something was said");
}
