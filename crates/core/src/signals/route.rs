//! Route: a batch of the inbox becomes queue items and dead letters, in one statement, under the epoch of the owner.
//!
//! What a signal meets is decided here, before anything is written; the statement then writes all of it or, when the epoch is
//! not the owner's any more, nothing. A signal that the queue refuses is found by halving the batch, and is put aside alone: it slows
//! nobody.

use std::collections::HashMap;

use super::DeadReason;
use super::schema::Schema;
use crate::db::{self, Database, Read as _, column, statement};
use crate::id::{DefinitionId, DispatcherId, Epoch, ServerId, WorkspaceId};

/// The classes of errors by which PostgreSQL refuses something in the data; the next try would be refused alike.
const REFUSALS: [&str; 4] = ["22", "23", "54", "P0"];

/// Under whose right a batch is routed. The statement writes only while the dispatcher's row says the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence<'a> {
    pub(crate) dispatcher_id: &'a DispatcherId,
    pub(crate) epoch: Epoch,
    pub(crate) owner: ServerId,
}

/// What one batch came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// What was looked at.
    pub(crate) seen: usize,
    /// Became queue items.
    pub(crate) routed: u64,
    /// Became dead letters.
    pub(crate) dead: u64,
    /// The epoch is not the owner's any more: nothing was written.
    pub(crate) superseded: bool,
}

#[derive(sqlx::FromRow)]
struct Loaded {
    signal_key: String,
    name: String,
    workflow_definition_id: Option<DefinitionId>,
    workspace_id: Option<WorkspaceId>,
    priority: i32,
    payload_schema: Option<String>,
    payload: Option<String>,
    published: bool,
}

/// A signal and what it meets.
struct Verdict {
    signal_key: String,
    workspace_id: Option<WorkspaceId>,
    definition_id: Option<DefinitionId>,
    priority: i32,
    dead: Option<(DeadReason, String)>,
}

/// Routes up to `limit` signals. `dead` is told of every reason for which one was put aside.
pub(crate) async fn route_batch(
    database: &Database,
    fence: &Fence<'_>,
    limit: usize,
    mut dead: impl FnMut(DeadReason) + Send,
) -> Result<Batch, db::Error> {
    let rows: Vec<Loaded> = sqlx::query_as(statement!("signals/load"))
        .bind(fence.dispatcher_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .all(database)
        .await?;
    let seen = rows.len();
    if seen == 0 {
        return Ok(Batch::default());
    }
    let batch = write_all(database, fence, &mut judge(rows), &mut dead).await?;
    Ok(Batch { seen, ..batch })
}

/// Writes a batch. One in it that the queue refuses is found by halving, and is put aside alone.
async fn write_all(
    database: &Database,
    fence: &Fence<'_>,
    verdicts: &mut [Verdict],
    dead: &mut (impl FnMut(DeadReason) + Send),
) -> Result<Batch, db::Error> {
    let refusal = match write(database, fence, verdicts).await {
        Ok(batch) => {
            if batch.dead > 0 {
                let reasons = verdicts.iter().filter_map(|verdict| verdict.dead.as_ref());
                reasons.for_each(|(reason, _)| dead(*reason));
            }
            return Ok(batch);
        }
        Err(error) if error.is_of(&REFUSALS) => error,
        Err(error) => return Err(error),
    };
    if let [one] = verdicts {
        if one.dead.is_some() {
            return Err(refusal);
        }
        one.dead = Some((DeadReason::Refused, refusal.message()));
        return Box::pin(write_all(database, fence, verdicts, dead)).await;
    }
    let (left, right) = verdicts.split_at_mut(verdicts.len() / 2);
    let mut batch = Box::pin(write_all(database, fence, left, dead)).await?;
    if !batch.superseded {
        let rest = Box::pin(write_all(database, fence, right, dead)).await?;
        batch.routed += rest.routed;
        batch.dead += rest.dead;
        batch.superseded = rest.superseded;
    }
    Ok(batch)
}

fn judge(rows: Vec<Loaded>) -> Vec<Verdict> {
    let mut schemas: HashMap<String, Result<Schema, String>> = HashMap::new();
    rows.into_iter()
        .map(|row| {
            let dead = obstacle(&row, &mut schemas);
            Verdict {
                signal_key: row.signal_key,
                workspace_id: row.workspace_id,
                definition_id: row.workflow_definition_id,
                priority: row.priority,
                dead,
            }
        })
        .collect()
}

/// What keeps a signal from being routed.
fn obstacle(
    row: &Loaded,
    schemas: &mut HashMap<String, Result<Schema, String>>,
) -> Option<(DeadReason, String)> {
    if row.workflow_definition_id.is_none() || row.workspace_id.is_none() {
        let words = format!("no trigger of the project has the name {:?}", row.name);
        return Some((DeadReason::UnknownSignal, words));
    }
    if !row.published {
        let words = "the workflow definition has no published version";
        return Some((DeadReason::NoVersion, words.to_owned()));
    }
    let text = row.payload_schema.as_ref()?;
    if !schemas.contains_key(text) {
        schemas.insert(text.clone(), Schema::read(text));
    }
    match schemas.get(text)? {
        Ok(schema) => schema
            .complaint(row.payload.as_deref().unwrap_or_default())
            .map(|words| (DeadReason::InvalidPayload, words)),
        Err(words) => Some((DeadReason::InvalidSchema, words.clone())),
    }
}

async fn write(database: &Database, fence: &Fence<'_>, verdicts: &[Verdict]) -> Result<Batch, db::Error> {
    let query = sqlx::query_as(statement!("signals/route"))
        .bind(fence.dispatcher_id)
        .bind(fence.epoch)
        .bind(fence.owner)
        .bind(column(verdicts, |verdict| verdict.signal_key.as_str()))
        .bind(column(verdicts, |verdict| verdict.workspace_id))
        .bind(column(verdicts, |verdict| verdict.definition_id))
        .bind(column(verdicts, |verdict| verdict.priority))
        .bind(column(verdicts, |verdict| {
            verdict.dead.as_ref().map(|(reason, _)| *reason)
        }))
        .bind(column(verdicts, |verdict| {
            verdict.dead.as_ref().map(|(_, words)| words.as_str())
        }));
    let (held, routed, dead): (bool, i64, i64) = query.one(database).await?;
    Ok(Batch {
        seen: verdicts.len(),
        routed: routed.unsigned_abs(),
        dead: dead.unsigned_abs(),
        superseded: !held,
    })
}
