//! Alarms, in the words of the public relations and functions, and servers that fire them at a receiver.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::receiver::Receiver;
use super::{Launch, TestDatabase, eventually};

/// A secret for the servers of the tests; with one, a wake reads the keys of its target first.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";

/// A database, a workspace in it, and a receiver.
pub(crate) struct Alarms {
    pub(crate) database: TestDatabase,
    pub(crate) receiver: Receiver,
    workspace: Uuid,
}

/// An occurrence as outsiders see it.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub(crate) struct Occurrence {
    pub(crate) status: String,
    pub(crate) attempts: i32,
    pub(crate) recoveries: i32,
    pub(crate) reason: Option<String>,
}

impl Alarms {
    pub(crate) async fn new() -> Self {
        Self::on(TestDatabase::new().await).await
    }

    pub(crate) async fn on(database: TestDatabase) -> Self {
        Self {
            workspace: database.workspace(1).await,
            receiver: Receiver::start().await,
            database,
        }
    }

    pub(crate) fn launch(&self) -> Launch {
        self.launch_on(&self.database)
    }

    /// The same receiver for servers on another database.
    pub(crate) fn launch_on(&self, database: &TestDatabase) -> Launch {
        Launch::on(database)
            .with("ALARMS__ROUTER_URL", &self.receiver.url(""))
            .with("ALARMS__ALLOW_TARGETS", "127.0.0.1")
            .with("ALARMS__SIGNING_SECRET", SECRET)
    }

    /// Sets an alarm by the SQL function; the target is the receiver at this path.
    pub(crate) async fn set(&self, path: &str, arguments: &str) -> Uuid {
        self.set_at(&self.receiver.url(path), arguments).await
    }

    /// The same at any address.
    pub(crate) async fn set_at(&self, target: &str, arguments: &str) -> Uuid {
        let query = format!(
            "select stationmaster.set_alarm('{}', target_url => '{target}', {arguments})",
            self.workspace
        );
        sqlx::query_scalar(AssertSqlSafe(query))
            .fetch_one(&self.database.pool)
            .await
            .unwrap()
    }

    /// One that fires now.
    pub(crate) async fn now(&self, path: &str) -> Uuid {
        self.set(path, "delay => '0'").await
    }

    pub(crate) async fn status(&self, alarm: Uuid) -> String {
        let query = "select status from stationmaster.alarms where id = $1";
        sqlx::query_scalar(query)
            .bind(alarm)
            .fetch_one(&self.database.pool)
            .await
            .unwrap()
    }

    pub(crate) async fn until(&self, alarm: Uuid, status: &str) {
        eventually(&format!("the alarm is {status}"), async || {
            self.status(alarm).await == status
        })
        .await;
    }

    /// Oldest first.
    pub(crate) async fn occurrences(&self, alarm: Uuid) -> Vec<Occurrence> {
        let query = "select status, attempts, recoveries, reason from stationmaster.alarm_occurrences
                     where alarm_id = $1 order by scheduled_for";
        sqlx::query_as(query)
            .bind(alarm)
            .fetch_all(&self.database.pool)
            .await
            .unwrap()
    }

    pub(crate) async fn run(&self, statement: &str) {
        sqlx::query(AssertSqlSafe(statement.to_owned()))
            .execute(&self.database.pool)
            .await
            .unwrap();
    }

    /// Waits until so many requests have come, answered or not.
    pub(crate) async fn until_arrived(&self, count: usize) {
        eventually(&format!("{count} wakes have come"), async || {
            self.receiver.arrived() >= count
        })
        .await;
    }
}
