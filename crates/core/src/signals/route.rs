//! Route: a batch of the inbox becomes queue items and dead letters, in one statement, under the epoch of the owner.
//!
//! What a signal meets is decided here, before anything is written; the statement then writes all of it or, when the epoch is
//! not the owner's any more, nothing. A signal that the queue refuses is found by trying the batch one by one, and is put aside
//! alone: it slows nobody.

use std::collections::HashMap;

use super::DeadReason;
use super::schema::Schema;
use crate::db::{self, Database, Read as _, column, statement};
use crate::id::{DefinitionId, DispatcherId, Epoch, ServerId, WorkspaceId};

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
    signal_id: String,
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
    signal_id: String,
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
    mut dead: impl FnMut(DeadReason),
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
    let verdicts = judge(rows);
    let mut batch = match write(database, fence, &verdicts).await {
        Ok(batch) => {
            count(&verdicts, batch, &mut dead);
            batch
        }
        Err(error) if is_refusal(&error) => one_by_one(database, fence, verdicts, &mut dead).await?,
        Err(error) => return Err(error),
    };
    batch.seen = seen;
    Ok(batch)
}

fn count(verdicts: &[Verdict], batch: Batch, dead: &mut impl FnMut(DeadReason)) {
    if batch.dead > 0 {
        for (reason, _) in verdicts.iter().filter_map(|verdict| verdict.dead.as_ref()) {
            dead(*reason);
        }
    }
}

/// PostgreSQL refused something in the data; the next try would be refused alike.
fn is_refusal(error: &db::Error) -> bool {
    let classes = ["22", "23", "54", "P0"];
    error
        .code()
        .is_some_and(|code| classes.iter().any(|class| code.starts_with(class)))
}

fn judge(rows: Vec<Loaded>) -> Vec<Verdict> {
    let mut schemas: HashMap<String, Result<Schema, String>> = HashMap::new();
    rows.into_iter()
        .map(|row| {
            let dead = obstacle(&row, &mut schemas);
            Verdict {
                signal_id: row.signal_id,
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
        .bind(column(verdicts, |verdict| verdict.signal_id.as_str()))
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

/// Somebody in the batch is refused by the queue: each is tried alone, and who is refused alone is put aside.
async fn one_by_one(
    database: &Database,
    fence: &Fence<'_>,
    verdicts: Vec<Verdict>,
    dead: &mut impl FnMut(DeadReason),
) -> Result<Batch, db::Error> {
    let mut all = Batch::default();
    for mut verdict in verdicts {
        let one = match write(database, fence, std::slice::from_ref(&verdict)).await {
            Ok(one) => one,
            Err(error) if is_refusal(&error) => {
                verdict.dead = Some((DeadReason::Refused, error.message()));
                write(database, fence, std::slice::from_ref(&verdict)).await?
            }
            Err(error) => return Err(error),
        };
        count(std::slice::from_ref(&verdict), one, dead);
        all.routed += one.routed;
        all.dead += one.dead;
        if one.superseded {
            all.superseded = true;
            break;
        }
    }
    Ok(all)
}
