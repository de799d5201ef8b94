//! Looks: what the self-checks of the runs on this server see. Each run checks itself in its own time; one statement looks for all of
//! them, and what it saw of the others is theirs for a moment, so that fifty idle dispatchers do not ask fifty times.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::ownership::Ownership;
use super::{DispatcherId, Epoch, Tenure};
use crate::db::{self, Database, Read as _, column, statement};
use crate::engine::dispatchers::Checked;
use crate::engine::dispatchers::state::Registration;
use crate::id::ServerId;

/// What is left of a look once somebody has made it.
#[derive(Default)]
pub(super) struct Looks(Mutex<Left>);

#[derive(Default)]
struct Left {
    made_at: Option<Instant>,
    /// Taken out by whom it is for, so that nobody is told the same thing twice.
    seen: HashMap<(DispatcherId, Epoch), Checked>,
}

#[derive(sqlx::FromRow)]
struct Seen {
    id: DispatcherId,
    epoch: Epoch,
    held: bool,
    servers: Vec<ServerId>,
    task_queues: Vec<String>,
    silent: Vec<ServerId>,
}

impl Looks {
    /// What a self-check of this tenure sees: a look of its own, or what one for another saw no longer ago than `fresh`.
    pub(super) async fn take(
        &self,
        database: &Database,
        ownership: &Ownership,
        tenure: &Tenure,
        stale_after: Duration,
        fresh: Duration,
    ) -> Result<Checked, db::Error> {
        let mut left = self.0.lock().await;
        let key = (tenure.dispatcher_id.clone(), tenure.epoch);
        if left.made_at.is_some_and(|at| at.elapsed() < fresh)
            && let Some(seen) = left.seen.remove(&key)
        {
            return Ok(seen);
        }
        let mut asked: Vec<Tenure> = ownership.held().into_iter().map(|held| held.tenure).collect();
        if !asked.contains(tenure) {
            asked.push(tenure.clone());
        }
        // Counted from before the statement: what it saw is at most so old.
        let made_at = Instant::now();
        let query = sqlx::query_as(statement!("dispatchers/check"))
            .bind(column(&asked, |tenure| tenure.dispatcher_id.0.as_str()))
            .bind(column(&asked, |tenure| tenure.epoch))
            .bind(column(&asked, |tenure| tenure.owner))
            .bind(stale_after.as_secs_f64());
        let rows: Vec<Seen> = query.all(database).await?;
        left.made_at = Some(made_at);
        left.seen = rows
            .into_iter()
            .map(|row| ((row.id.clone(), row.epoch), row.into()))
            .collect();
        Ok(left.seen.remove(&key).unwrap_or_else(superseded))
    }
}

/// What the run of another owner's dispatcher is told.
pub(super) fn superseded() -> Checked {
    Checked {
        superseded: true,
        ..Checked::default()
    }
}

impl From<Seen> for Checked {
    fn from(row: Seen) -> Self {
        if !row.held {
            return superseded();
        }
        let registered = row.servers.into_iter().zip(row.task_queues);
        let registered = registered.map(|(server_id, task_queue)| Registration {
            server_id,
            task_queue,
        });
        Self {
            superseded: false,
            registered: registered.collect(),
            silent: row.silent,
        }
    }
}
