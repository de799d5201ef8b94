//! What a run works on: workspaces with limits, a workflow, and a loaded queue.

use std::time::Duration;

use anyhow::Result;
use stationmaster_core::db::Database;
use uuid::Uuid;

/// The workspaces of a run, and the work of each execution.
#[derive(Debug, Clone)]
pub struct Load {
    /// One limit for each workspace.
    pub limits: Vec<i32>,
    /// How long each execution takes; zero: nothing at all.
    pub work: Duration,
    /// Items in all, spread evenly over the workspaces, or by limit.
    pub items: usize,
    /// Spread by limit, so that every workspace has work for the same time.
    pub by_limit: bool,
}

/// Makes the workspaces and their definitions; every one has the same one-node graph.
pub async fn make_workspaces(database: &Database, load: &Load) -> Result<()> {
    let ids: Vec<Uuid> = load.limits.iter().map(|_| Uuid::now_v7()).collect();
    let node = if load.work.is_zero() {
        serde_json::json!({"id": "work", "type": "noop"})
    } else {
        serde_json::json!({"id": "work", "type": "wait", "seconds": load.work.as_secs_f64()})
    };
    let graph = serde_json::json!({"nodes": [node]}).to_string();
    let mut transaction = database.pool().begin().await?;
    sqlx::query(
        "insert into stationmaster.workspaces (id, name, plan, max_concurrent)
         select id, 'bench-' || n, 'ENTERPRISE', l
         from unnest($1::uuid[], $2::integer[]) with ordinality as w (id, l, n)",
    )
    .bind(&ids)
    .bind(&load.limits)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "insert into stationmaster.workflow_definitions (workspace_id, name) select unnest($1::uuid[]), 'bench'",
    )
    .bind(&ids)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "insert into stationmaster.workflow_definition_versions (workflow_definition_id, workflow)
         select id, $2::jsonb from stationmaster.workflow_definitions where workspace_id = any ($1)",
    )
    .bind(&ids)
    .bind(&graph)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

/// Enqueues the items through the public relation, in statements of some ten thousand rows.
pub async fn load_items(database: &Database, load: &Load, mut progress: impl FnMut(usize)) -> Result<Duration> {
    let total: i64 = load.limits.iter().map(|limit| i64::from(*limit)).sum();
    let began = std::time::Instant::now();
    let mut loaded = 0;
    while loaded < load.items {
        let some = (load.items - loaded).min(10_000);
        // Every workspace appears in the cycle once, or as often as it has slots.
        sqlx::query(
            "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
             select d.workspace_id, d.id, jsonb_build_object('n', n)
             from generate_series($1::bigint, $1 + $2 - 1) n
             join (select d.workspace_id, d.id, s.slot
                   from (select d.workspace_id, d.id,
                                case when $3 then sum(w.max_concurrent) over (order by d.id) - w.max_concurrent
                                     else row_number() over (order by d.id) - 1 end as first,
                                case when $3 then w.max_concurrent else 1 end as slots
                         from stationmaster.workflow_definitions d
                         join stationmaster.workspaces w on w.id = d.workspace_id) d
                   cross join lateral generate_series(d.first, d.first + d.slots - 1) s (slot)) d
               on d.slot = n % $4
             order by n",
        )
        .bind(i64::try_from(loaded)?)
        .bind(i64::try_from(some)?)
        .bind(load.by_limit)
        .bind(if load.by_limit { total } else { i64::try_from(load.limits.len())? })
        .execute(database.pool())
        .await?;
        loaded += some;
        progress(loaded);
    }
    Ok(began.elapsed())
}

/// Removes everything that an earlier run left.
pub async fn wipe(database: &Database) -> Result<()> {
    sqlx::query(
        "truncate stationmaster.queue_items, stationmaster.queue_pending, stationmaster.executions_active,
                  stationmaster.executions_finished, stationmaster.queue_hints, stationmaster.queue_events,
                  stationmaster.workspace_capacity, stationmaster.embedded_runs, stationmaster.workspaces,
                  stationmaster.workflow_definitions, stationmaster.workflow_definition_versions",
    )
    .execute(database.pool())
    .await?;
    sqlx::query("vacuum analyze").execute(database.pool()).await?;
    Ok(())
}
