//! What a noun needs of whoever does the work: the station of this server, or, for requests on a database alone, the servers
//! elsewhere. Those hear of what is written by the database's own notifications.

use std::sync::Arc;

use anyhow::Result;
use futures::future::BoxFuture;
use stationmaster_core::dispatchers::supervisor::{self, Asked, Office, Options, Report};
use stationmaster_core::engine::Obstacle;
use stationmaster_core::id::ExecutionId;
use stationmaster_core::station::Station;

use super::problem::{Kind, Problem};

/// Who does the work.
#[derive(Clone)]
pub(super) enum Work {
    /// This server.
    Here(Arc<Station>),
    /// Other servers, if any. What looks after dispatchers is made when it is asked for: most requests need no engine.
    Elsewhere(Arc<dyn Fn() -> BoxFuture<'static, Result<Office>> + Send + Sync>),
}

impl Work {
    /// There are new signals.
    pub(super) fn ring_for_signals(&self) {
        if let Self::Here(station) = self {
            station.ring_for_signals();
        }
    }

    /// What keeps a run from going on, as far as this server's engine knows and answers in time.
    pub(super) async fn obstacle(&self, execution: ExecutionId) -> Option<Obstacle> {
        match self {
            Self::Here(station) => station.obstacle(execution).await,
            Self::Elsewhere(_) => None,
        }
    }

    /// Removes what a crash left behind, or only looks.
    pub(super) async fn reconcile_dispatchers(
        &self,
        options: Options,
        asked: Asked<'_>,
    ) -> Result<Report, Problem> {
        match self {
            Self::Here(station) => {
                let words = "this server does not look after dispatchers; ask another one";
                let report = station.reconcile_dispatchers(options, asked).await;
                Ok(report.ok_or_else(|| Problem::new(Kind::Unavailable, words))??)
            }
            Self::Elsewhere(office) => {
                let broken = |error| Problem::new(Kind::Internal, format!("{error:#}"));
                let office = office().await.map_err(broken)?;
                Ok(supervisor::reconcile(&office, options, asked).await?)
            }
        }
    }
}
