//! Recovery: wakes in the hands of a server that is not there any more are taken from it, and fire again under the same id.
//!
//! Whether the target has had them nobody knows; at least once is the promise. The loss is counted on the occurrence and
//! spends none of its tries. Leases that run out while their server lives need no pass: a claim takes them, unless their alarm was
//! paused or cancelled meanwhile. Of a paused alarm they are parked, of a cancelled one they are over.
//!
//! And it writes down which targets do not answer this server, so that people are told by whichever server they ask.

use std::time::Duration;

use super::AlarmsContext;
use super::operate::give_turns;
use crate::db::{self, Write as _, statement, within};
use crate::id::{AlarmId, ServerId};
use crate::task::{Next, Pass};

/// The bell tells of lost wakes; this is for one that was not heard.
const EVERY: Duration = Duration::from_secs(10);
const BATCH: i64 = 500;
/// Silent targets that are written down.
const SILENT: usize = 100;

/// See the module.
pub(crate) struct Recover {
    context: AlarmsContext,
    /// Under which id which targets were last said to be silent.
    told: Option<(ServerId, Vec<String>)>,
}

impl Recover {
    pub(crate) fn new(context: AlarmsContext) -> Self {
        Self { context, told: None }
    }

    /// Writes down which targets are silent, when they are others than before, or this server comes back under another id.
    async fn tell_silence(&mut self, server: ServerId) -> Result<(), db::Error> {
        let silent = self.context.targets.silent(SILENT);
        let targets: Vec<String> = silent.iter().map(|(target, _)| target.clone()).collect();
        let (told, before) = match &self.told {
            Some((told, before)) => (Some(*told), before.as_slice()),
            None => (None, [].as_slice()),
        };
        // A server that has not said anything under its id has no rows to be taken away.
        if before == targets && (told == Some(server) || targets.is_empty()) {
            return Ok(());
        }
        let seconds: Vec<f64> = silent.iter().map(|(_, since)| since.as_secs_f64()).collect();
        sqlx::query(statement!("breakers/tell"))
            .bind(server)
            .bind(&targets)
            .bind(seconds)
            .run(&self.context.database)
            .await?;
        self.told = Some((server, targets));
        Ok(())
    }

    /// Takes back what was lost, and gives turns anew. Answers what it was.
    async fn recover(&self) -> Result<Vec<AlarmId>, db::Error> {
        let mut transaction = self.context.database.begin().await?;
        let lost: Vec<(AlarmId, jiff_sqlx::Timestamp)> = sqlx::query_as(statement!("alarms/recover"))
            .bind(BATCH)
            .bind(self.context.presence.id())
            .fetch_all(&mut *transaction)
            .await?;
        let lost: Vec<AlarmId> = lost.into_iter().map(|(alarm, _)| alarm).collect();
        if !lost.is_empty() {
            give_turns(&mut transaction, &lost).await?;
        }
        transaction.commit().await?;
        Ok(lost)
    }
}

impl Pass for Recover {
    fn name(&self) -> &'static str {
        "alarm recovery"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        // A breaker opens and closes by wakes; that nobody aims at its target any more is seen only by looking.
        let context = &self.context;
        context.metrics.alarms.open_targets(context.targets.open());
        let Some(server) = self.context.presence.holder() else {
            return Ok(Next::After(EVERY));
        };
        self.tell_silence(server).await?;
        let lost = within(self.recover()).await?;
        if lost.is_empty() {
            return Ok(Next::After(EVERY));
        }
        self.context.metrics.alarms.recovered(lost.len());
        tracing::info!(
            occurrences = lost.len(),
            "Recovered {} wakes of lost servers",
            lost.len()
        );
        self.context.bells.alarms.ring();
        Ok(Next::Now)
    }
}
