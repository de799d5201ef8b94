//! Housekeeping of signals: forgets what is past its retention. One server at a time, as a duty, and seldom while there is nothing
//! to do.

use std::time::Duration;

use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::duty;
use crate::presence::Presence;
use crate::task::{Next, Pass, Rest};

const DUTY: &str = "signals";
const AT_ONCE: Duration = Duration::from_millis(50);
const BATCH: i64 = 2_000;

/// See the module.
pub(crate) struct Housekeeping {
    pub(crate) database: Database,
    pub(crate) presence: Presence,
    pub(crate) retention: Duration,
    pub(crate) rest: Rest,
}

impl Pass for Housekeeping {
    fn name(&self) -> &'static str {
        "housekeeping of signals"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if duty::hold(&self.database, &self.presence, DUTY).await?.is_none() {
            return Ok(Next::After(duty::ELSEWHERE));
        }
        let retention = self.retention.as_secs_f64();
        let query = sqlx::query_scalar(statement!("signals/prune"))
            .bind(retention)
            .bind(BATCH);
        let pruned: i64 = query.one(&self.database).await?;
        let query = sqlx::query(statement!("signals/prune_events"))
            .bind(retention)
            .bind(BATCH);
        let events = query.run(&self.database).await?;
        Ok(Next::After(if pruned >= BATCH {
            AT_ONCE
        } else {
            self.rest.after(pruned > 0 || events > 0)
        }))
    }
}
