//! Housekeeping of alarms: removes what is past its retention. One server at a time, as a duty, in small steps that hold nobody
//! up, and seldom while there is nothing to do.

use std::time::Duration;

use super::AlarmsContext;
use crate::db::{self, Read as _, statement};
use crate::duty;
use crate::task::{Next, Pass, Rest};

const DUTY: &str = "alarm housekeeping";
const AT_ONCE: Duration = Duration::from_millis(50);
const PRUNE_BATCH: i64 = 2_000;

/// See the module.
pub(crate) struct Housekeeping {
    pub(crate) context: AlarmsContext,
    pub(crate) rest: Rest,
}

impl Pass for Housekeeping {
    fn name(&self) -> &'static str {
        "alarm housekeeping"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let context = &self.context;
        if duty::hold(&context.database, &context.presence, DUTY)
            .await?
            .is_none()
        {
            return Ok(Next::After(duty::ELSEWHERE));
        }
        let prune = |statement: &'static str| {
            sqlx::query_scalar::<_, i64>(statement)
                .bind(context.settings.retention.as_secs_f64())
                .bind(PRUNE_BATCH)
        };
        let occurrences = prune(statement!("alarms/prune_occurrences"))
            .one(&context.database)
            .await?;
        let alarms = prune(statement!("alarms/prune_alarms"))
            .one(&context.database)
            .await?;
        // With much to prune it goes on, but leaves the machine to others in between.
        let pruned = occurrences.max(alarms);
        Ok(Next::After(if pruned >= PRUNE_BATCH {
            AT_ONCE
        } else {
            self.rest.after(pruned > 0)
        }))
    }
}
