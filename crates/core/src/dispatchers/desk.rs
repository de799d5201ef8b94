//! The desk: what a dispatcher's run may do to the world, whichever engine it runs on. Every act is fenced twice: by this process's
//! own monotonic clock before it is sent, and by the epoch in the statement that writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::ownership::{Ownership, Standing};
use super::state::Registration;
use super::{Settings, Tenure};
use crate::db::{self, Database, statement, within};
use crate::id::ServerId;
use crate::observe::Metrics;
use crate::signals::route_batch;

/// The longest that one look into the inbox takes before it reports.
const LOOK: Duration = Duration::from_secs(3);
/// How long a dispatcher that was busy goes on looking, so that senders need not ring.
const LINGER: Duration = Duration::from_millis(200);
const LINGER_LOOK: Duration = Duration::from_millis(10);

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This process may not act now: its lease is about to end, or has. It may be renewed.
    #[error("this server does not hold the dispatcher now")]
    NotNow,
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// What a look into the inbox came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routed {
    /// Became queue items.
    pub routed: u64,
    /// Became dead letters.
    pub dead: u64,
    /// The inbox was not emptied.
    pub more: bool,
    /// Another epoch owns the dispatcher: this run is over.
    pub superseded: bool,
}

/// What a self-check saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// Another epoch owns the dispatcher: this run is over.
    pub superseded: bool,
    /// The servers that stand by.
    pub registered: Vec<Registration>,
    /// Those of them that were not heard of for too long.
    pub silent: Vec<ServerId>,
}

/// What an eviction came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evicted {
    /// Another epoch owns the dispatcher: this run is over.
    pub superseded: bool,
    /// Who was evicted.
    pub servers: Vec<ServerId>,
}

/// See the module.
pub struct Desk {
    database: Database,
    ownership: Ownership,
    settings: Arc<Settings>,
    metrics: Arc<Metrics>,
}

impl Desk {
    pub(super) fn new(
        database: Database,
        ownership: Ownership,
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            database,
            ownership,
            settings,
            metrics,
        }
    }

    /// Routes what waits in the inbox, until it is empty or the look has lasted long enough.
    pub async fn route(&self, tenure: &Tenure) -> Result<Routed, Error> {
        let began = Instant::now();
        let mut all = Routed::default();
        let mut attended = None::<Instant>;
        loop {
            if !self.may_act(tenure)? {
                return Ok(self.superseded(tenure, all));
            }
            let batch = route_batch(&self.database, tenure, self.settings.batch_size, |reason| {
                self.metrics.dispatchers.dead(reason);
            })
            .await?;
            all.routed += batch.routed;
            all.dead += batch.dead;
            self.metrics.dispatchers.routed(batch.routed);
            if batch.superseded {
                return Ok(self.superseded(tenure, all));
            }
            if batch.seen > 0 {
                tracing::debug!(dispatcher = %tenure.dispatcher_id, routed = batch.routed, dead = batch.dead, "Routed signals");
                self.attend(tenure, all, &mut attended).await?;
            }
            let full = batch.seen >= self.settings.batch_size;
            // Whoever was told that nobody needs to ring must be looked for until that has worn off.
            let promised = attended.is_some_and(|at| at.elapsed() < LINGER + LINGER_LOOK);
            all.more = full || promised;
            if !all.more || began.elapsed() > LOOK {
                return Ok(all);
            }
            if !full {
                tokio::time::sleep(LINGER_LOOK).await;
            }
        }
    }

    /// Says to senders that nobody needs to ring for a while. A lone signal is not worth it; a stream of them is.
    async fn attend(
        &self,
        tenure: &Tenure,
        all: Routed,
        attended: &mut Option<Instant>,
    ) -> Result<(), Error> {
        if all.routed + all.dead > 1 && attended.is_none_or(|at| at.elapsed() > LINGER / 2) {
            let query = sqlx::query(statement!("attention/attend"))
                .bind(&tenure.dispatcher_id.0)
                .bind(LINGER.as_secs_f64())
                .bind(None::<f64>);
            within(query.execute(self.database.pool())).await?;
            *attended = Some(Instant::now());
        }
        Ok(())
    }

    /// Looks whether the run is still the owner's, who stands by, and who was not heard of.
    pub async fn check(&self, tenure: &Tenure) -> Result<Checked, Error> {
        let query = sqlx::query_scalar(statement!("dispatchers/holds"))
            .bind(&tenure.dispatcher_id.0)
            .bind(tenure.epoch)
            .bind(tenure.owner);
        if !self.may_act(tenure)? || !within(query.fetch_one(self.database.pool())).await? {
            return Ok(Checked {
                superseded: true,
                ..Checked::default()
            });
        }
        let query = sqlx::query_as(statement!("dispatchers/registered")).bind(&tenure.dispatcher_id.0);
        let registered: Vec<(ServerId, String)> = within(query.fetch_all(self.database.pool())).await?;
        let query = sqlx::query_scalar(statement!("dispatchers/stale_servers"))
            .bind(&tenure.dispatcher_id.0)
            .bind(self.settings.stale_after.as_secs_f64());
        let silent: Vec<ServerId> = within(query.fetch_all(self.database.pool())).await?;
        Ok(Checked {
            superseded: false,
            registered: registered
                .into_iter()
                .map(|(server_id, task_queue)| Registration {
                    server_id,
                    task_queue,
                })
                .collect(),
            silent,
        })
    }

    /// Takes silent servers off the list.
    pub async fn evict(&self, tenure: &Tenure, servers: &[ServerId]) -> Result<Evicted, Error> {
        if !self.may_act(tenure)? {
            self.metrics.stale_write("evict");
            return Ok(Evicted {
                superseded: true,
                ..Evicted::default()
            });
        }
        let ids: Vec<uuid::Uuid> = servers.iter().map(|server| server.0).collect();
        let query = sqlx::query_as(statement!("dispatchers/evict"))
            .bind(&tenure.dispatcher_id.0)
            .bind(tenure.epoch)
            .bind(tenure.owner)
            .bind(ids)
            .bind(self.settings.stale_after.as_secs_f64());
        let (held, evicted): (bool, Vec<uuid::Uuid>) = within(query.fetch_one(self.database.pool())).await?;
        if !held {
            self.metrics.stale_write("evict");
        }
        for server in &evicted {
            tracing::warn!(dispatcher = %tenure.dispatcher_id, %server, "Evicted a server that was not heard of");
        }
        self.metrics.dispatchers.evicted(evicted.len());
        Ok(Evicted {
            superseded: !held,
            servers: evicted.into_iter().map(ServerId).collect(),
        })
    }

    /// May this process act? `false`: it is not the owner any more.
    fn may_act(&self, tenure: &Tenure) -> Result<bool, Error> {
        match self.ownership.standing(tenure) {
            Standing::Holds => Ok(true),
            Standing::Lapsed => Err(Error::NotNow),
            Standing::Lost => Ok(false),
        }
    }

    fn superseded(&self, tenure: &Tenure, all: Routed) -> Routed {
        self.metrics.stale_write("route");
        tracing::warn!(dispatcher = %tenure.dispatcher_id, epoch = tenure.epoch.0, "A late route was refused: the dispatcher has another owner");
        Routed {
            more: false,
            superseded: true,
            ..all
        }
    }
}
