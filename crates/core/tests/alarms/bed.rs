//! What the tests of alarms stand on: a database, a receiver of wakes that servers trust, and ways to ask.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::time::Duration;

use jiff::Timestamp;
use stationmaster_core::alarms::Settings;
use stationmaster_core::alarms::inspect::{self, Alarm, AlarmEvent, Occurrence};
use stationmaster_core::alarms::set::set;
use stationmaster_core::id::{AlarmId, WorkspaceId};
use stationmaster_wire::NewAlarm;

use crate::common::receiver::{Received, Receiver};
use crate::common::{Server, Testbed, eventually};

/// A database, a workspace in it, and a receiver.
pub(crate) struct Bed {
    pub(crate) testbed: Testbed,
    pub(crate) receiver: Receiver,
    pub(crate) workspace: WorkspaceId,
}

/// An expression that comes so seldom that only its first occurrence matters.
pub(crate) const YEARLY: &str = "0 0 1 1 *";

/// Once, at this instant.
pub(crate) fn once_at(at: Timestamp) -> NewAlarm {
    NewAlarm {
        fire_at: Some(at),
        ..NewAlarm::default()
    }
}

/// Once, after this time.
pub(crate) fn once_in(delay: Duration) -> NewAlarm {
    NewAlarm {
        delay: Some(delay.as_secs_f64()),
        ..NewAlarm::default()
    }
}

/// Once, when the clocks of the zone show this time.
pub(crate) fn civil(at: &str, zone: &str) -> NewAlarm {
    NewAlarm {
        civil_at: Some(at.to_owned()),
        timezone: Some(zone.to_owned()),
        ..NewAlarm::default()
    }
}

/// Again and again.
pub(crate) fn cron(expression: &str, zone: &str) -> NewAlarm {
    NewAlarm {
        cron_expr: Some(expression.to_owned()),
        timezone: Some(zone.to_owned()),
        ..NewAlarm::default()
    }
}

impl Bed {
    pub(crate) async fn new() -> Self {
        let testbed = Testbed::new().await;
        let workspace = testbed.workspace(1).await;
        Self {
            testbed,
            workspace,
            receiver: Receiver::start().await,
        }
    }

    /// Settings under which the receiver is the router, and may be named as a target.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            router_url: Some(self.receiver.url("").parse().unwrap()),
            allow_targets: vec![self.receiver.address.to_string().parse().unwrap()],
            ..Settings::default()
        }
    }

    pub(crate) async fn server(&self) -> Server {
        self.server_with(self.settings()).await
    }

    pub(crate) async fn server_with(&self, settings: Settings) -> Server {
        Server::start_alarms(&self.testbed.url, settings).await
    }

    /// A request for an alarm of the workspace, that goes to the router.
    pub(crate) fn plain(&self, when: NewAlarm) -> NewAlarm {
        NewAlarm {
            workspace_id: self.workspace.0,
            ..when
        }
    }

    /// A request for an alarm that goes to this path of the receiver.
    pub(crate) fn request(&self, when: NewAlarm, path: &str) -> NewAlarm {
        NewAlarm {
            target_url: Some(self.receiver.url(path)),
            ..self.plain(when)
        }
    }

    pub(crate) async fn set(&self, request: NewAlarm) -> AlarmId {
        set(&self.testbed.database, &request, "tester")
            .await
            .unwrap()
            .alarm()
    }

    /// One that fires now.
    pub(crate) async fn now(&self, path: &str) -> AlarmId {
        self.set(self.request(once_in(Duration::ZERO), path)).await
    }

    pub(crate) fn cron(&self, expression: &str, path: &str) -> NewAlarm {
        self.request(cron(expression, "UTC"), path)
    }

    pub(crate) async fn alarm(&self, id: AlarmId) -> Alarm {
        inspect::alarm(&self.testbed.database, id)
            .await
            .unwrap()
            .expect("the alarm is there")
    }

    pub(crate) async fn status(&self, id: AlarmId) -> String {
        self.alarm(id).await.status.to_string()
    }

    pub(crate) async fn until(&self, id: AlarmId, status: &str) -> Alarm {
        eventually(&format!("alarm {id} is {status}"), async || {
            self.status(id).await == status
        })
        .await;
        self.alarm(id).await
    }

    /// Oldest first.
    pub(crate) async fn occurrences(&self, id: AlarmId) -> Vec<Occurrence> {
        let page = inspect::occurrences(&self.testbed.database, id, None, None, 1000).await;
        let mut all = page.unwrap().rows;
        all.reverse();
        all
    }

    /// What was done to it, oldest first.
    pub(crate) async fn events(&self, id: AlarmId) -> Vec<AlarmEvent> {
        let mut all = inspect::history(&self.testbed.database, id, None, 1000)
            .await
            .unwrap();
        all.reverse();
        all
    }

    pub(crate) async fn statuses(&self, id: AlarmId) -> Vec<String> {
        self.occurrences(id)
            .await
            .into_iter()
            .map(|occurrence| occurrence.status.to_string())
            .collect()
    }

    /// Waits for so many wakes at a path, and answers them.
    pub(crate) async fn wakes(&self, path: &str, count: usize) -> Vec<Received> {
        let what = format!("{count} wakes came to {path}");
        eventually(&what, async || self.receiver.at(path).len() >= count).await;
        self.receiver.at(path)
    }

    /// Waits until the try under way is settled and the occurrence waits for the next; then lets that come at once.
    pub(crate) async fn next_try(&self, id: AlarmId, attempts: i32) {
        eventually(&format!("try {attempts} has failed"), async || {
            let all = self.occurrences(id).await;
            all.last()
                .is_some_and(|last| last.status.as_str() == "retrying" && last.attempts == attempts)
        })
        .await;
        self.hurry(id).await;
    }

    /// What waits for its next try comes at once.
    pub(crate) async fn hurry(&self, id: AlarmId) {
        self.testbed
            .run(&format!(
                "update stationmaster_internal.occurrences_open set ready_at = now() where alarm_id = '{id}' and holder is null"
            ))
            .await;
    }

    /// Whose turn it is, is kept: see the statement.
    pub(crate) async fn assert_turns(&self) {
        let query = sqlx::query_scalar::<_, String>(include_str!("turns.sql"));
        let problems = query.fetch_all(self.testbed.pool()).await.unwrap();
        assert!(problems.is_empty(), "{problems:#?}");
    }

    /// Pretends that the alarm's next occurrence was due long ago.
    pub(crate) async fn backdate(&self, id: AlarmId, by: &str) -> Timestamp {
        let query = format!(
            "update stationmaster_internal.alarm_standings
             set next_fire_at = date_trunc('minute', now() - interval '{by}'), next_due_at = date_trunc('minute', now() - interval '{by}')
             where alarm_id = '{id}'"
        );
        self.testbed.run(&query).await;
        let query = "select next_fire_at from stationmaster_internal.alarm_standings where alarm_id = $1";
        let at: jiff_sqlx::Timestamp = sqlx::query_scalar(query)
            .bind(id)
            .fetch_one(self.testbed.pool())
            .await
            .unwrap();
        at.to_jiff()
    }
}
