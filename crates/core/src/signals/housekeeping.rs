//! Housekeeping of signals: measures what waits, forgets what is past its retention. One server at a time, as a duty.

use std::sync::Arc;
use std::time::Duration;

use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::duty;
use crate::observe::Metrics;
use crate::presence::Presence;
use crate::task::{Next, Pass};

const DUTY: &str = "signals";
const BEAT: Duration = Duration::from_secs(1);
const BATCH: i64 = 2_000;

/// See the module.
pub(crate) struct Housekeeping {
    pub(crate) database: Database,
    pub(crate) presence: Presence,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) retention: Duration,
}

impl Pass for Housekeeping {
    fn name(&self) -> &'static str {
        "housekeeping of signals"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if duty::hold(&self.database, &self.presence, DUTY).await?.is_none() {
            return Ok(Next::After(BEAT));
        }
        let (waiting, oldest): (i64, Option<f64>) = sqlx::query_as(statement!("signals/depth"))
            .one(&self.database)
            .await?;
        self.metrics
            .dispatchers
            .inbox(waiting, oldest.unwrap_or_default());
        let retention = self.retention.as_secs_f64();
        let query = sqlx::query_scalar(statement!("signals/prune"))
            .bind(retention)
            .bind(BATCH);
        let pruned: i64 = query.one(&self.database).await?;
        let query = sqlx::query(statement!("signals/prune_events"))
            .bind(retention)
            .bind(BATCH);
        query.run(&self.database).await?;
        Ok(Next::After(if pruned >= BATCH { BEAT / 20 } else { BEAT }))
    }
}
