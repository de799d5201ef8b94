//! Retention: what is forgotten when it is old, of that which belongs to no lane.
//!
//! | what | kept for | forgotten by |
//! |---|---|---|
//! | finished executions and their items | the setting of executions | housekeeping of executions, at its own pace |
//! | settled occurrences, ended alarms | the setting of alarms | housekeeping of alarms |
//! | settled signals, events of dispatchers | the setting of dispatchers | housekeeping of signals |
//! | events, within a limit of rows | [`Retention::events`] | this pass |
//! | lines of the audit | [`Retention::audit`] | this pass |
//! | operations that are over | as long as the audit, which tells of them too | this pass |
//! | what happened in each minute | [`Retention::history`] | this pass |
//! | kept answers | a day | this pass |
//!
//! A lane forgets its own rows, because how much it may do at once depends on how busy the lane is. Everything goes in batches,
//! oldest first; every server does it, and two at once waste effort and break nothing.

use std::time::Duration;

use crate::access::answers;
use crate::audit;
use crate::db::{self, Database};
use crate::events;
use crate::history;
use crate::operations;
use crate::task::{Next, Pass};

const EVERY: Duration = Duration::from_mins(1);

/// See the module.
pub struct Retention {
    /// Where.
    pub database: Database,
    /// For how long events are kept.
    pub events: Duration,
    /// For how long lines of the audit are kept, and operations that are over.
    pub audit: Duration,
    /// For how long what happened in each minute is kept.
    pub history: Duration,
}

impl Pass for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        // Events that nobody listened to are numbered here, so that they grow old.
        events::number(&self.database).await?;
        let events = events::prune(&self.database, self.events).await?;
        let answers = answers::prune(&self.database).await?;
        let lines = audit::prune(&self.database, self.audit).await?;
        let operations = operations::prune(&self.database, self.audit).await?;
        let minutes = history::prune(&self.database, self.history).await?;
        let much = events + answers + lines + operations + minutes > 0;
        Ok(Next::After(if much { EVERY / 10 } else { EVERY }))
    }
}
