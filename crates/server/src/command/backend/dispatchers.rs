//! Dispatchers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::TryStreamExt as _;
use stationmaster_client::{Error, wire};
use stationmaster_core::dispatchers::DispatcherId;
use stationmaster_core::dispatchers::classify::Legacy;
use stationmaster_core::dispatchers::inspect;
use stationmaster_core::dispatchers::supervisor::{self, Office, Options};
use stationmaster_core::engine::dispatchers::state::Status;
use stationmaster_core::observe::Metrics;

use super::super::Context;
use super::{Backend, rows, size};
use crate::config::Config;
use crate::failure::{Kind, Refusal};
use crate::http::shapes;
use crate::wiring;

/// How long a run may take to tell of itself.
const PATIENCE: Duration = Duration::from_secs(3);

impl Backend {
    pub(in crate::command) async fn dispatchers(
        &self,
        project: Option<&str>,
    ) -> Result<Vec<wire::Dispatcher>> {
        /// Dispatchers that are listed at most.
        const MOST: i64 = 10_000;
        match self {
            Self::Database(direct) => {
                let found = inspect::list(&direct.database, project, MOST).await?;
                Ok(found.into_iter().map(shapes::dispatcher).collect())
            }
            Self::Api(client) => {
                let query = wire::DispatcherQuery {
                    project: project.map(str::to_owned),
                    ..wire::DispatcherQuery::default()
                };
                Ok(client.all_dispatchers(query).try_collect().await?)
            }
        }
    }

    pub(in crate::command) async fn dispatcher(&self, id: &str) -> Result<wire::Dispatcher> {
        let unknown = || {
            let advice = "See which there are: stationmaster dispatchers list";
            Refusal::new(Kind::NotFound, format!("there is no dispatcher {id}"), advice)
        };
        match self {
            Self::Database(direct) => {
                let found = inspect::show(&direct.database, &DispatcherId(id.to_owned())).await?;
                Ok(shapes::dispatcher(found.ok_or_else(unknown)?))
            }
            Self::Api(client) => match client.dispatcher(id).await {
                Err(Error::NotFound(_)) => Err(unknown().into()),
                other => Ok(other?),
            },
        }
    }

    /// What happened to a dispatcher lately, newest first.
    pub(in crate::command) async fn dispatcher_events(
        &self,
        id: &str,
        limit: usize,
    ) -> Result<Vec<wire::DispatcherEvent>> {
        match self {
            Self::Database(direct) => {
                let id = DispatcherId(id.to_owned());
                let events = inspect::events(&direct.database, Some(&id), None, rows(limit)).await?;
                Ok(events.into_iter().map(shapes::dispatcher_event).collect())
            }
            Self::Api(client) => {
                let query = wire::PageQuery {
                    limit: size(limit),
                    cursor: None,
                };
                Ok(client.dispatcher_history(id, &query).await?.items)
            }
        }
    }

    /// What the run of a dispatcher tells of itself. Only a run on the engine of our own settings can be asked, and it need not
    /// answer; a server does not pass the question on.
    pub(in crate::command) async fn dispatcher_run(
        &self,
        dispatcher: &wire::Dispatcher,
        context: &Context,
    ) -> Result<Option<Status>> {
        let Self::Database(_) = self else {
            return Ok(None);
        };
        let engine = wiring::dispatcher_engine(&context.settings()?.config)?;
        if dispatcher.engine.as_deref() != Some(engine.name()) {
            return Ok(None);
        }
        let id = DispatcherId(dispatcher.id.clone());
        let asked = tokio::time::timeout(PATIENCE, engine.status(&id)).await;
        Ok(asked.ok().and_then(Result::ok).flatten())
    }

    /// Removes what a crash left behind, or only looks. Directly, with the engine and the heartbeats of our own settings.
    pub(in crate::command) async fn reconcile_dispatchers(
        &self,
        how: &wire::Reconcile,
        context: &Context,
    ) -> Result<wire::Reconciled> {
        match self {
            Self::Database(direct) => {
                let options = Options {
                    dry_run: how.dry_run,
                    legacy: if how.legacy { Legacy::Remove } else { Legacy::Leave },
                };
                let office = office(direct.database.clone(), &context.settings()?.config)?;
                let report = supervisor::reconcile(&office, options, &Context::actor()).await?;
                shapes::reconciled(&report, how.dry_run)
                    .ok_or_else(|| anyhow::anyhow!("the report cannot be told"))
            }
            Self::Api(client) => Ok(client.reconcile_dispatchers(how).await?),
        }
    }
}

fn office(database: stationmaster_core::db::Database, config: &Config) -> Result<Office> {
    let store = wiring::heartbeats(config)?.store(&database);
    Ok(Office::new(
        database,
        wiring::dispatcher_engine(config)?,
        store,
        Arc::new(config.dispatchers()),
        Arc::new(Metrics::new()),
    ))
}
