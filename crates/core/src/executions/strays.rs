//! Strays: runs that the engine holds open for a workspace of ours, and that no row of ours tells of.
//!
//! A failover that loses the last commits leaves them behind, or a backup that was brought back: what was enqueued and started in the
//! time that is gone runs on, and nobody waits for it. They hold no slot and are never ended by themselves: the rows may still come
//! back with the old primary, and only a person knows what the run is worth. They are found at two looks in a row, noted, told (audit,
//! events, doctor, overview, metric), and ended when somebody says so, by their run id. A run that names no workspace of ours is
//! somebody else's, who shares the engine.

use std::collections::HashSet;

use serde_json::json;
pub use stationmaster_wire::Stray;

use super::ExecutionsContext;
use crate::audit;
use crate::db::{self, Database, Read as _, Write as _, column, statement, within};
use crate::engine::{OpenRun, Origin};
use crate::id::{EngineId, ExecutionId, WorkspaceId};

/// Runs that are asked about in one round.
const ASK_AT_ONCE: usize = 100;
/// Ends that are carried out in one round.
const END_AT_ONCE: i64 = 100;

/// What the reconciler remembers of strays between two looks.
#[derive(Default)]
pub(super) struct Strays {
    /// Runs that no row told of at the last look.
    seen: HashSet<String>,
}

/// A run that no row tells of.
#[derive(sqlx::FromRow)]
struct Unknown {
    execution_id: ExecutionId,
    run_id: String,
    is_noted: bool,
}

impl Unknown {
    fn run(&self) -> OpenRun {
        OpenRun {
            execution_id: self.execution_id,
            run_id: self.run_id.clone(),
        }
    }
}

impl Strays {
    /// Compares what the engine holds open with our rows.
    pub(super) async fn look(
        &mut self,
        context: &ExecutionsContext,
        engine: EngineId,
        open: &[OpenRun],
    ) -> Result<(), db::Error> {
        let unknown = unknown(&context.database, open).await?;
        forget(context, engine, &unknown).await?;
        let is_met_again = |run: &&Unknown| !run.is_noted && self.seen.contains(&run.run_id);
        let again: Vec<OpenRun> = unknown
            .iter()
            .filter(is_met_again)
            .take(ASK_AT_ONCE)
            .map(Unknown::run)
            .collect();
        self.seen = unknown.into_iter().map(|run| run.run_id).collect();
        if again.is_empty() {
            return Ok(());
        }
        // A list may lag behind; what is asked by name does not.
        let origins = context.engine.origins(&again).await;
        context.contact.heard(&origins);
        let found = again.into_iter().zip(origins.unwrap_or_default());
        let found: Vec<(OpenRun, Origin)> = found.filter_map(|(run, origin)| Some((run, origin?))).collect();
        note(context, engine, &found).await
    }
}

async fn unknown(database: &Database, open: &[OpenRun]) -> Result<Vec<Unknown>, db::Error> {
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query_as(statement!("strays/unknown"))
        .bind(column(open, |run| run.execution_id))
        .bind(column(open, |run| run.run_id.as_str()));
    query.all(database).await
}

async fn forget(context: &ExecutionsContext, engine: EngineId, unknown: &[Unknown]) -> Result<(), db::Error> {
    let query = sqlx::query_as(statement!("strays/forget"))
        .bind(engine)
        .bind(column(unknown, |run| run.run_id.as_str()));
    let forgotten: Vec<(ExecutionId, String)> = query.all(&context.database).await?;
    for (execution, run) in forgotten {
        tracing::info!(%execution, run, "A run that no row told of has ended, or its row is back");
    }
    Ok(())
}

async fn note(
    context: &ExecutionsContext,
    engine: EngineId,
    found: &[(OpenRun, Origin)],
) -> Result<(), db::Error> {
    let query = sqlx::query_as(statement!("strays/note"))
        .bind(column(found, |(run, _)| run.run_id.as_str()))
        .bind(column(found, |(run, _)| run.execution_id))
        .bind(column(found, |(_, origin)| origin.workspace_id))
        .bind(column(found, |(_, origin)| {
            origin.started_at.map(jiff_sqlx::Timestamp::from)
        }))
        .bind(engine)
        .bind(context.actor());
    let noted: Vec<(ExecutionId, String, WorkspaceId)> = query.all(&context.database).await?;
    for (execution, run, workspace) in noted {
        tracing::warn!(%execution, run, %workspace, "The engine runs an execution that no row tells of: it holds no slot, and is left to a person");
    }
    Ok(())
}

/// Strays of the workspaces in scope, in the order of their runs; only those of one execution, when one is named.
pub async fn list(
    database: &Database,
    execution: Option<ExecutionId>,
    after: Option<&str>,
    limit: i64,
) -> Result<Vec<Stray>, db::Error> {
    let query = sqlx::query_as(statement!("strays/list"))
        .bind(database.among(None))
        .bind(after)
        .bind(limit)
        .bind(execution);
    query.all(database).await
}

/// Wishes that this very run be ended; a server carries it out. Answers whether it is a stray.
pub async fn end(
    database: &Database,
    execution: ExecutionId,
    run_id: &str,
    reason: Option<&str>,
    actor: &str,
) -> Result<bool, db::Error> {
    let mut session = database.transaction().await?;
    let query = sqlx::query_as::<_, (WorkspaceId, Option<String>)>(statement!("strays/wish"))
        .bind(run_id)
        .bind(execution)
        .bind(actor)
        .bind(reason);
    let Some((workspace, _)) = within(query.fetch_optional(&mut *session)).await? else {
        return Ok(false);
    };
    let detail = json!({ "run_id": run_id, "reason": reason });
    let subject = execution.to_string();
    let action = "execution.end_stray";
    audit::write(&mut session, actor, action, Some(workspace), &subject, detail).await?;
    session.finish().await?;
    Ok(true)
}

/// A stray that somebody wants ended.
#[derive(sqlx::FromRow)]
struct Wished {
    execution_id: ExecutionId,
    run_id: String,
    actor: String,
    reason: Option<String>,
}

/// Ends the strays that somebody wants ended. Answers whether there is one that could not be ended yet.
pub(super) async fn end_wished(context: &ExecutionsContext) -> Result<bool, db::Error> {
    let Some(engine) = context.contact.engine_id() else {
        return Ok(false);
    };
    let query = sqlx::query_as(statement!("strays/wished"))
        .bind(engine)
        .bind(END_AT_ONCE);
    let wished: Vec<Wished> = query.all(&context.database).await?;
    let mut is_left = false;
    for wish in wished {
        is_left |= !carry_out(context, wish).await?;
    }
    Ok(is_left)
}

/// Answers whether the wish is dealt with.
async fn carry_out(context: &ExecutionsContext, wish: Wished) -> Result<bool, db::Error> {
    let run = OpenRun {
        execution_id: wish.execution_id,
        run_id: wish.run_id,
    };
    if unknown(&context.database, std::slice::from_ref(&run))
        .await?
        .is_empty()
    {
        // Its row is back: it is no stray, and the reconciler forgets that it was one.
        return Ok(true);
    }
    let reason = wish.reason.unwrap_or_else(|| format!("ended by {}", wish.actor));
    let ended = context.engine.terminate(&run, &reason).await;
    context.contact.heard(&ended);
    if ended.is_err() {
        return Ok(false);
    }
    tracing::warn!(execution = %run.execution_id, run = run.run_id, actor = wish.actor, "Ended a run that no row told of, as it was wished");
    let query = sqlx::query(statement!("strays/ended"))
        .bind(&run.run_id)
        .bind(context.actor());
    query.run(&context.database).await?;
    Ok(true)
}
