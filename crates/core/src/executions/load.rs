//! Load: what the engine needs beside the ids of a claim. Read after the claim has committed, outside any transaction.
//!
//! Whether a definition is still there is asked every time; graphs are immutable and remembered.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::ExecutionsContext;
use super::admit::AdmittedRow;
use super::claim::{Claim, Work};
use crate::db::{self, statement, within};
use crate::engine::StartRequest;
use crate::graph::Graph;
use crate::id::{DefinitionId, ExecutionId, ItemId, ServerId, Token, VersionId, WorkspaceId};

/// Graphs remembered; versions are immutable, so they never go stale.
const GRAPHS: usize = 10_000;

#[derive(sqlx::FromRow)]
struct Definition {
    id: DefinitionId,
    task_queue: Option<String>,
    workflow_type: Option<String>,
    max_attempts: Option<i32>,
    exists: bool,
    workspace_exists: bool,
}

/// See the module.
pub(super) struct Loader {
    shared: ExecutionsContext,
    graphs: Mutex<HashMap<VersionId, Arc<Graph>>>,
}

impl Loader {
    pub(super) fn new(shared: ExecutionsContext) -> Self {
        Self {
            shared,
            graphs: Mutex::default(),
        }
    }

    /// Reads what the engine will need. The claim has committed: whatever fails here is covered by its lease.
    pub(super) async fn load(
        &self,
        holder: ServerId,
        token: Token,
        began: Instant,
        rows: Vec<AdmittedRow>,
    ) -> Result<Vec<Claim>, db::Error> {
        let rows: Vec<_> = rows
            .into_iter()
            .filter_map(|row| {
                let item_id = row.item_id?;
                Some((
                    row.workspace_id,
                    row.execution_id.unwrap_or(ExecutionId(item_id.0)),
                    item_id,
                    row.workflow_definition_id?,
                    row.workflow_definition_version_id?,
                    row.attempts?,
                    row.execution_id.is_some(),
                ))
            })
            .collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let items: Vec<ItemId> = rows.iter().map(|row| row.2).collect();
        let mut inputs = self.load_inputs(&items).await?;
        let reads_input = self.shared.engine.reads_input();
        let definitions = self
            .load_definitions(rows.iter().map(|row| (row.3, row.0)))
            .await?;
        let graphs = self.load_graphs(rows.iter().map(|row| row.4)).await?;
        let settings = &self.shared.settings;
        let valid_until = began + settings.claim_lease;
        let claims = rows.into_iter().map(
            |(workspace_id, execution_id, item_id, definition, version, attempts, again)| {
                let known = definitions.get(&definition);
                let max_attempts = known.and_then(|definition| definition.max_attempts);
                let input = inputs.remove(&item_id);
                let input = input.or_else(|| (!reads_input).then(|| (RawValue::NULL.to_owned(), None)));
                let work = match (known, graphs.get(&version), input) {
                    (Some(known), Some(graph), Some((input, traceparent))) if known.exists => {
                        Work::Ready(Box::new(StartRequest {
                            execution_id,
                            token,
                            again,
                            workspace_id,
                            definition_id: definition,
                            version_id: version,
                            workflow_type: known
                                .workflow_type
                                .clone()
                                .unwrap_or_else(|| settings.workflow_type.clone()),
                            task_queue: known
                                .task_queue
                                .clone()
                                .unwrap_or_else(|| settings.task_queue.clone()),
                            graph: Arc::clone(graph),
                            input,
                            traceparent,
                        }))
                    }
                    (Some(known), ..) if !known.workspace_exists => Work::Gone("workspace_gone"),
                    (Some(known), ..) if known.exists => Work::Gone("version_gone"),
                    _ => Work::Gone("definition_gone"),
                };
                Claim {
                    execution_id,
                    item_id,
                    workspace_id,
                    token,
                    holder,
                    _hold: self.shared.in_flight.take(execution_id, token),
                    valid_until,
                    attempts: u32::try_from(attempts).unwrap_or_default(),
                    max_attempts: max_attempts
                        .and_then(|most| u32::try_from(most).ok())
                        .unwrap_or(settings.max_attempts),
                    work,
                }
            },
        );
        Ok(claims.collect())
    }

    async fn load_inputs(
        &self,
        items: &[ItemId],
    ) -> Result<HashMap<ItemId, (Box<RawValue>, Option<String>)>, db::Error> {
        // An engine that does not read them needs none, unless somebody follows the traces they belong to.
        if !self.shared.engine.reads_input() && !tracing::enabled!(tracing::Level::DEBUG) {
            return Ok(HashMap::new());
        }
        let rows: Vec<(ItemId, String, Option<String>)> = within(
            sqlx::query_as(statement!("executions/load"))
                .bind(items)
                .fetch_all(self.shared.database.pool()),
        )
        .await?;
        let parsed = rows.into_iter().filter_map(|(id, input, traceparent)| {
            // PostgreSQL has parsed it before; what it prints is JSON.
            Some((id, (RawValue::from_string(input).ok()?, traceparent)))
        });
        Ok(parsed.collect())
    }

    async fn load_definitions(
        &self,
        ids: impl Iterator<Item = (DefinitionId, WorkspaceId)>,
    ) -> Result<HashMap<DefinitionId, Definition>, db::Error> {
        let (ids, workspaces): (Vec<DefinitionId>, Vec<WorkspaceId>) =
            ids.collect::<HashMap<_, _>>().into_iter().unzip();
        let rows: Vec<Definition> = within(
            sqlx::query_as(statement!("executions/load_definitions"))
                .bind(ids)
                .bind(workspaces)
                .fetch_all(self.shared.database.pool()),
        )
        .await?;
        Ok(rows
            .into_iter()
            .map(|definition| (definition.id, definition))
            .collect())
    }

    async fn load_graphs(
        &self,
        ids: impl Iterator<Item = VersionId>,
    ) -> Result<HashMap<VersionId, Arc<Graph>>, db::Error> {
        let wanted: HashSet<VersionId> = ids.collect();
        let (mut known, missing) = {
            let memory = self.graphs.lock();
            let known: HashMap<_, _> = wanted
                .iter()
                .filter_map(|id| Some((*id, Arc::clone(memory.get(id)?))))
                .collect();
            let missing: Vec<VersionId> = wanted.into_iter().filter(|id| !known.contains_key(id)).collect();
            (known, missing)
        };
        if missing.is_empty() {
            return Ok(known);
        }
        let rows: Vec<(VersionId, String)> = within(
            sqlx::query_as(statement!("executions/load_versions"))
                .bind(missing)
                .fetch_all(self.shared.database.pool()),
        )
        .await?;
        let mut memory = self.graphs.lock();
        if memory.len() > GRAPHS {
            memory.clear();
        }
        for (id, json) in rows {
            // The database refused what cannot run; a graph that still does not parse counts as gone.
            if let Ok(graph) = Graph::parse(&json) {
                let graph = Arc::new(graph);
                memory.insert(id, Arc::clone(&graph));
                known.insert(id, graph);
            }
        }
        Ok(known)
    }
}
