//! Housekeeping of alarms: measures how they stand and removes what is past its retention. One server at a time, as a duty, in
//! small steps that hold nobody up.

use std::time::Duration;

use super::AlarmsContext;
use crate::db::{self, Read as _, statement};
use crate::duty;
use crate::task::{Next, Pass};

const DUTY: &str = "alarm housekeeping";
const BEAT: Duration = Duration::from_secs(1);
const PRUNE_BATCH: i64 = 2_000;

/// See the module.
pub(crate) struct Housekeeping {
    pub(crate) shared: AlarmsContext,
}

impl Pass for Housekeeping {
    fn name(&self) -> &'static str {
        "alarm housekeeping"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let shared = &self.shared;
        if duty::hold(&shared.database, &shared.presence, DUTY)
            .await?
            .is_none()
        {
            return Ok(Next::After(BEAT));
        }
        let (open, late, failing): (i64, f64, i64) = sqlx::query_as(statement!("alarms/measure"))
            .one(&shared.database)
            .await?;
        shared.metrics.alarms.standing(open, late, failing);
        let prune = |statement: &'static str| {
            sqlx::query_scalar::<_, i64>(statement)
                .bind(shared.settings.retention.as_secs_f64())
                .bind(PRUNE_BATCH)
        };
        let occurrences = prune(statement!("alarms/prune_occurrences"))
            .one(&shared.database)
            .await?;
        let alarms = prune(statement!("alarms/prune_alarms"))
            .one(&shared.database)
            .await?;
        // With much to prune it goes on, but leaves the machine to others in between.
        let much = occurrences.max(alarms) >= PRUNE_BATCH;
        Ok(Next::After(if much { BEAT / 20 } else { BEAT }))
    }
}
