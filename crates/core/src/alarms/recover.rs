//! Recovery: wakes in the hands of a server that is not there any more are taken from it, and fire again under the same id.
//!
//! Whether the target has had them nobody knows; at least once is the promise. The loss is counted on the occurrence and
//! spends none of its tries. Leases that run out while their server lives need no pass: a claim takes them.

use std::time::Duration;

use super::AlarmsContext;
use crate::db::{self, Read as _, statement};
use crate::id::AlarmId;
use crate::task::{Next, Pass};

/// The bell tells of lost wakes; this is for one that was not heard.
const EVERY: Duration = Duration::from_secs(10);
const BATCH: i64 = 500;

/// See the module.
pub(crate) struct Recover {
    pub(crate) shared: AlarmsContext,
}

impl Pass for Recover {
    fn name(&self) -> &'static str {
        "alarm recovery"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if self.shared.presence.holder().is_none() {
            return Ok(Next::After(EVERY));
        }
        let lost: Vec<(AlarmId, jiff_sqlx::Timestamp)> = sqlx::query_as(statement!("alarms/recover"))
            .bind(BATCH)
            .all(&self.shared.database)
            .await?;
        if lost.is_empty() {
            return Ok(Next::After(EVERY));
        }
        self.shared.metrics.alarms.recovered(lost.len());
        tracing::info!(
            occurrences = lost.len(),
            "Recovered {} wakes of lost servers",
            lost.len()
        );
        self.shared.bells.alarms.ring();
        Ok(Next::Now)
    }
}
