//! Load: what the engine needs beside the ids of a claim. Read after the claim has committed, outside any transaction.
//!
//! Whether a definition is still there is asked every time; graphs are immutable and remembered.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::admit::AdmittedRow;
use super::claim::{Batch, Claim, Work};
use super::{EndReason, ExecutionsContext};
use crate::db::{self, Read as _, statement};
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
    run_timeout: Option<f64>,
    exists: bool,
    workspace_exists: bool,
}

/// An item that a claim took.
struct Taken {
    workspace_id: WorkspaceId,
    execution_id: ExecutionId,
    item_id: ItemId,
    definition_id: DefinitionId,
    version_id: VersionId,
    attempts: i32,
    ready_at: Option<Timestamp>,
    /// An earlier try may have started it.
    again: bool,
}

impl Taken {
    /// `None`: the row tells how a workspace stands.
    fn of(row: &AdmittedRow) -> Option<Self> {
        let item_id = row.item_id?;
        Some(Self {
            workspace_id: row.workspace_id,
            execution_id: row.execution_id.unwrap_or(ExecutionId(item_id.0)),
            item_id,
            definition_id: row.workflow_definition_id?,
            version_id: row.workflow_definition_version_id?,
            attempts: row.attempts?,
            ready_at: ready_at(item_id, row.run_at),
            again: row.execution_id.is_some(),
        })
    }
}

/// When an item could first start: when it was made, which ids that the database gives tell, or when its time had come.
fn ready_at(item: ItemId, run_at: Option<jiff_sqlx::Timestamp>) -> Option<Timestamp> {
    let (seconds, nanoseconds) = item.0.get_timestamp()?.to_unix();
    let made = Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanoseconds).ok()?).ok()?;
    let due = run_at.map(jiff_sqlx::Timestamp::to_jiff);
    Some(due.map_or(made, |due| due.max(made)))
}

/// See the module.
pub(super) struct Loader {
    context: ExecutionsContext,
    graphs: Mutex<HashMap<VersionId, Arc<Graph>>>,
}

impl Loader {
    pub(super) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            graphs: Mutex::default(),
        }
    }

    /// Reads what the engine will need. The claim has committed: whatever fails here is covered by its lease.
    pub(super) async fn load(
        &self,
        (holder, token): (ServerId, Token),
        began: Instant,
        rows: Vec<AdmittedRow>,
        round: tracing::Span,
    ) -> Result<Vec<Claim>, db::Error> {
        let rows: Vec<Taken> = rows.iter().filter_map(Taken::of).collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let items: Vec<ItemId> = rows.iter().map(|row| row.item_id).collect();
        let mut inputs = self.load_inputs(&items).await?;
        let reads_input = self.context.engine.reads_input();
        let definitions = self
            .load_definitions(rows.iter().map(|row| (row.definition_id, row.workspace_id)))
            .await?;
        let graphs = self.load_graphs(rows.iter().map(|row| row.version_id)).await?;
        let settings = &self.context.settings;
        let valid_until = began + settings.claim_lease;
        let batch = Arc::new(Batch {
            items: rows.len(),
            began,
            metrics: Arc::clone(&self.context.metrics),
            round,
        });
        let claims = rows.into_iter().map(|row| {
            let known = definitions.get(&row.definition_id);
            let max_attempts = known.and_then(|definition| definition.max_attempts);
            let input = inputs.remove(&row.item_id);
            let input = input.or_else(|| (!reads_input).then(|| (RawValue::NULL.to_owned(), None)));
            let work = match (known, graphs.get(&row.version_id), input) {
                (Some(known), Some(graph), Some((input, traceparent))) if known.exists => {
                    Work::Ready(Box::new(StartRequest {
                        execution_id: row.execution_id,
                        token,
                        again: row.again,
                        workspace_id: row.workspace_id,
                        definition_id: row.definition_id,
                        version_id: row.version_id,
                        workflow_type: known
                            .workflow_type
                            .as_ref()
                            .unwrap_or(&settings.workflow_type)
                            .clone(),
                        task_queue: known.task_queue.as_ref().unwrap_or(&settings.task_queue).clone(),
                        graph: Arc::clone(graph),
                        input,
                        traceparent,
                        run_timeout: known
                            .run_timeout
                            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                    }))
                }
                (Some(known), ..) if !known.workspace_exists => Work::Gone(EndReason::WorkspaceGone),
                (Some(known), ..) if known.exists => Work::Gone(EndReason::VersionGone),
                _ => Work::Gone(EndReason::DefinitionGone),
            };
            Claim {
                execution_id: row.execution_id,
                item_id: row.item_id,
                workspace_id: row.workspace_id,
                token,
                holder,
                _hold: self.context.in_flight.take(row.execution_id, token),
                batch: Arc::clone(&batch),
                ready_at: row.ready_at,
                valid_until,
                attempts: u32::try_from(row.attempts).unwrap_or_default(),
                max_attempts: max_attempts
                    .and_then(|most| u32::try_from(most).ok())
                    .unwrap_or(settings.max_attempts),
                work,
            }
        });
        Ok(claims.collect())
    }

    async fn load_inputs(
        &self,
        items: &[ItemId],
    ) -> Result<HashMap<ItemId, (Box<RawValue>, Option<String>)>, db::Error> {
        // An engine that does not read them needs none, unless somebody follows the traces they belong to.
        if !self.context.engine.reads_input() && !tracing::enabled!(tracing::Level::DEBUG) {
            return Ok(HashMap::new());
        }
        let rows: Vec<(ItemId, String, Option<String>)> = sqlx::query_as(statement!("executions/load"))
            .bind(items)
            .all(&self.context.database)
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
        let rows: Vec<Definition> = sqlx::query_as(statement!("executions/load_definitions"))
            .bind(ids)
            .bind(workspaces)
            .all(&self.context.database)
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
        let rows: Vec<(VersionId, String)> = sqlx::query_as(statement!("executions/load_versions"))
            .bind(missing)
            .all(&self.context.database)
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
