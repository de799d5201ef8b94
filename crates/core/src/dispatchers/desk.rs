//! The desk of this server: what the runs of its dispatchers may do to the world, whichever engine they are on. Every act is fenced
//! twice: by this process's own monotonic clock before it is sent, and by the epoch in the statement that writes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use parking_lot::Mutex;

use super::looks::{Looks, superseded};
use super::ownership::{Ownership, Standing};
use super::{DispatcherId, Settings};
use crate::attention::{Attention, Terms};
use crate::db::{Database, Read as _, statement};
use crate::engine::dispatchers::{Acted, Checked, Desk, DeskError, Evicted, Routed, Tenure};
use crate::id::ServerId;
use crate::observe::{Metrics, trace};
use crate::signals::{Fence, route_batch};

/// The longest that one look into the inbox takes before it reports.
const LOOK: Duration = Duration::from_secs(3);
/// How long a dispatcher that was busy goes on looking, so that senders need not ring.
const ATTENTION: Terms = Terms {
    holds: Duration::from_millis(200),
    look_again: Duration::from_millis(10),
};

/// See the module.
pub(super) struct ServerDesk {
    pub(super) database: Database,
    pub(super) ownership: Ownership,
    pub(super) settings: Arc<Settings>,
    pub(super) metrics: Arc<Metrics>,
    /// What their self-checks see.
    pub(super) looks: Looks,
    /// Whom it would have evicted, so that it says so once.
    pub(super) spared: Mutex<HashSet<(DispatcherId, ServerId)>>,
}

impl ServerDesk {
    /// Routes what waits in the inbox, until it is empty or the look has lasted long enough.
    async fn route_now(&self, tenure: &Tenure) -> Result<Routed, DeskError> {
        let began = Instant::now();
        let attention = Attention::new(&tenure.dispatcher_id.0, "signals", ATTENTION);
        let fence = Fence {
            dispatcher_id: &tenure.dispatcher_id,
            epoch: tenure.epoch,
            owner: tenure.owner,
        };
        let mut all = Routed::default();
        loop {
            if !self.may_act(tenure)? {
                return Ok(self.superseded(tenure, all));
            }
            let batch = route_batch(&self.database, &fence, self.settings.batch_size, |reason| {
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
                // A lone signal is not worth it; a stream of them is.
                if all.routed + all.dead > 1 {
                    attention.worked();
                    attention.attend(&self.database, None).await;
                }
            }
            let full = batch.seen >= self.settings.batch_size;
            all.more = full || attention.is_awake();
            if !all.more || began.elapsed() > LOOK {
                return Ok(all);
            }
            if !full {
                tokio::time::sleep(ATTENTION.look_again).await;
            }
        }
    }

    /// Looks whether the run is still the owner's, who stands by, and who was not heard of.
    async fn check_now(&self, tenure: &Tenure) -> Result<Checked, DeskError> {
        if !self.may_act(tenure)? {
            return Ok(superseded());
        }
        let settings = &self.settings;
        let look = self.looks.take(
            &self.database,
            &self.ownership,
            tenure,
            settings.stale_after,
            settings.check_interval / 5,
        );
        let mut seen = look.await?;
        if !settings.evict {
            seen.silent = self.spare(tenure, &seen.silent);
        }
        Ok(seen)
    }

    /// Eviction is switched off: nobody is silent as far as a run is concerned, and whoever is, is told of once.
    fn spare(&self, tenure: &Tenure, silent: &[ServerId]) -> Vec<ServerId> {
        let mut spared = self.spared.lock();
        let dispatcher = &tenure.dispatcher_id;
        spared.retain(|(other, server)| other != dispatcher || silent.contains(server));
        for server in silent.iter().filter(|server| **server != tenure.owner) {
            if spared.insert((dispatcher.clone(), *server)) {
                tracing::info!(%dispatcher, %server, "A server was not heard of; it would be evicted, and dispatchers.evict is off");
            }
        }
        Vec::new()
    }

    /// Takes silent servers off the list.
    #[tracing::instrument(name = "flow:evict_servers", level = "debug", skip_all, fields(dispatcher = %tenure.dispatcher_id))]
    async fn evict_now(&self, tenure: &Tenure, servers: &[ServerId]) -> Result<Evicted, DeskError> {
        if !self.may_act(tenure)? {
            self.metrics.stale_write("evict");
            return Ok(Evicted {
                superseded: true,
                ..Evicted::default()
            });
        }
        let query = sqlx::query_as(statement!("dispatchers/evict"))
            .bind(&tenure.dispatcher_id)
            .bind(tenure.epoch)
            .bind(tenure.owner)
            .bind(servers)
            .bind(self.settings.stale_after.as_secs_f64())
            .bind(trace::own());
        let (held, evicted): (bool, Vec<ServerId>) = query.one(&self.database).await?;
        if !held {
            self.metrics.stale_write("evict");
        }
        if !evicted.is_empty() {
            let servers = listed(&evicted);
            tracing::warn!(dispatcher = %tenure.dispatcher_id, servers, "Evicted servers that were not heard of");
        }
        self.metrics.dispatchers.evicted(evicted.len());
        Ok(Evicted {
            superseded: !held,
            servers: evicted,
        })
    }

    /// May this process act? `false`: it is not the owner any more.
    fn may_act(&self, tenure: &Tenure) -> Result<bool, DeskError> {
        match self.ownership.standing(tenure) {
            Standing::Holds => Ok(true),
            Standing::Lapsed => Err(DeskError::NotNow),
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

/// Servers in one word, for the log.
pub(super) fn listed(servers: &[ServerId]) -> String {
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    servers.join(" ")
}

impl Desk for ServerDesk {
    fn route<'a>(&'a self, tenure: &'a Tenure) -> Acted<'a, Routed> {
        self.route_now(tenure).boxed()
    }

    fn check<'a>(&'a self, tenure: &'a Tenure) -> Acted<'a, Checked> {
        self.check_now(tenure).boxed()
    }

    fn evict<'a>(&'a self, tenure: &'a Tenure, servers: &'a [ServerId]) -> Acted<'a, Evicted> {
        self.evict_now(tenure, servers).boxed()
    }
}
