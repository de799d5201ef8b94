//! Signals and triggers.

use anyhow::Result;
use futures::TryStreamExt as _;
use stationmaster_client::wire;
use stationmaster_core::id::{DefinitionId, WorkspaceId};
use stationmaster_core::signals::inspect;
use stationmaster_core::signals::replay::{self, replay, replay_matching};
use stationmaster_core::signals::send::{Sent, send};
use stationmaster_core::signals::triggers::{self, NewTrigger, Which};

use super::super::Context;
use super::{Backend, Listed, cut, place_by, rows, size, told};
use crate::http::shapes;

impl Backend {
    pub(in crate::command) async fn send_signal(&self, signal: wire::NewSignal) -> Result<wire::SignalSent> {
        match self {
            Self::Database(direct) => {
                let signal = shapes::signal_request(signal);
                let sent = send(&direct.database, &signal, &Context::actor()).await?;
                Ok(wire::SignalSent {
                    id: signal.id,
                    duplicate: sent == Sent::Before,
                })
            }
            Self::Api(client) => Ok(client.send_signal(&signal).await?),
        }
    }

    /// Signals that match; the limit and the cursor of the query are not looked at.
    pub(in crate::command) async fn signals(
        &self,
        query: &wire::SignalQuery,
        limit: usize,
        before: Option<&str>,
    ) -> Result<Listed<wire::Signal>> {
        Listed::read(limit, before, async |limit, before| match self {
            Self::Database(direct) => {
                let read = |text: &str| text.parse().map_err(|_| "not a place in the inbox".to_owned());
                let filter = inspect::Filter {
                    project: query.project.clone(),
                    task_queue: query.task_queue.clone(),
                    name: query.name.clone(),
                    status: query.status.map(shapes::Translate::translate),
                    before: place_by(before, read)?,
                    limit: rows(limit) + 1,
                };
                let found = inspect::list(&direct.database, &filter).await?;
                let (found, next) = cut(found, limit, |signal| signal.position.to_string());
                Ok((found.into_iter().map(shapes::signal).collect(), next))
            }
            Self::Api(client) => {
                let query = wire::SignalQuery {
                    limit: size(limit),
                    cursor: before,
                    ..query.clone()
                };
                Ok(told(client.signals(&query).await?))
            }
        })
        .await
    }

    pub(in crate::command) async fn signal(&self, id: &str) -> Result<wire::Signal> {
        match self {
            Self::Database(direct) => {
                let found = inspect::show(&direct.database, id).await?;
                let found = found.ok_or_else(|| replay::Error::NotFound(id.to_owned()))?;
                Ok(shapes::signal(found))
            }
            Self::Api(client) => Ok(client.signal(id).await?),
        }
    }

    /// Puts one dead letter back into the inbox.
    pub(in crate::command) async fn replay_signal(&self, id: &str) -> Result<()> {
        match self {
            Self::Database(direct) => {
                replay(&direct.database, id, &Context::actor()).await?;
                Ok(())
            }
            Self::Api(client) => Ok(client.replay_signal(id).await.map(drop)?),
        }
    }

    /// Puts everything back that matches and is dead now. Answers how many.
    pub(in crate::command) async fn replay_signals(&self, which: &replay::Filter) -> Result<usize> {
        let client = match self {
            Self::Database(direct) => {
                let mut items = 0;
                loop {
                    let done = replay_matching(&direct.database, which, &Context::actor()).await?;
                    items += done.items;
                    if !done.more {
                        return Ok(items);
                    }
                }
            }
            Self::Api(client) => client,
        };
        // What dies again meanwhile is not put back once more.
        let (dead, mut done) = (self.dead_signals(which).await?, 0);
        while done < dead {
            let answer = client.replay_all(&bulk(which, false), None).await?;
            done += usize::try_from(answer.items)?;
            if !answer.more {
                break;
            }
        }
        Ok(done)
    }

    /// How many dead letters match.
    pub(in crate::command) async fn dead_signals(&self, which: &replay::Filter) -> Result<usize> {
        match self {
            Self::Database(direct) => Ok(replay::count_matching(&direct.database, which).await?.items),
            Self::Api(client) => {
                let answer = client.replay_all(&bulk(which, true), None).await?;
                Ok(usize::try_from(answer.items)?)
            }
        }
    }

    pub(in crate::command) async fn triggers(
        &self,
        query: &wire::TriggerQuery,
        limit: usize,
    ) -> Result<(Vec<wire::Trigger>, bool)> {
        let mut found: Vec<wire::Trigger> = match self {
            Self::Database(direct) => {
                let which = Which {
                    project: query.project.as_deref(),
                    workspace: query.workspace_id.map(WorkspaceId),
                    ..Which::default()
                };
                let found = triggers::list(&direct.database, &which, rows(limit) + 1).await?;
                found.into_iter().map(shapes::trigger).collect()
            }
            Self::Api(client) => {
                let found = client.all_triggers(query.clone());
                futures::StreamExt::take(found, limit + 1).try_collect().await?
            }
        };
        let more = found.len() > limit;
        found.truncate(limit);
        Ok((found, more))
    }

    pub(in crate::command) async fn put_trigger(
        &self,
        project: &str,
        name: &str,
        place: &wire::TriggerPlace,
        change: wire::TriggerChange,
    ) -> Result<wire::Trigger> {
        match self {
            Self::Database(direct) => {
                let trigger = NewTrigger {
                    project: project.to_owned(),
                    task_queue: place.task_queue.clone(),
                    name: name.to_owned(),
                    definition_id: DefinitionId(change.workflow_definition_id),
                    payload_schema: change.payload_schema,
                    priority: change.priority,
                };
                Ok(shapes::trigger(
                    triggers::set(&direct.database, &trigger, None).await?,
                ))
            }
            Self::Api(client) => Ok(client.put_trigger(project, name, place, &change).await?),
        }
    }

    pub(in crate::command) async fn remove_trigger(
        &self,
        project: &str,
        name: &str,
        place: &wire::TriggerPlace,
    ) -> Result<()> {
        match self {
            Self::Database(direct) => {
                let queue = place.task_queue.as_deref();
                Ok(triggers::remove(&direct.database, project, queue, name, None).await?)
            }
            Self::Api(client) => Ok(client.delete_trigger(project, name, place).await?),
        }
    }
}

fn bulk(which: &replay::Filter, dry_run: bool) -> wire::BulkReplay {
    wire::BulkReplay {
        workspace_id: None,
        project: which.project.clone(),
        task_queue: which.task_queue.clone(),
        name: which.name.clone(),
        reason: which.reason.clone(),
        dry_run,
    }
}
