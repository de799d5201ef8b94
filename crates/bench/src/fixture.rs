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

impl Load {
    /// Items that take no time, spread evenly.
    #[must_use]
    pub fn of(limits: Vec<i32>, items: usize) -> Self {
        Self {
            limits,
            work: Duration::ZERO,
            items,
            by_limit: false,
        }
    }
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
        "insert into stationmaster.workspaces (id, plan, max_concurrent)
         select id, 'ENTERPRISE', l from unnest($1::uuid[], $2::integer[]) as w (id, l)",
    )
    .bind(&ids)
    .bind(&load.limits)
    .execute(&mut *transaction)
    .await?;
    sqlx::query("insert into stationmaster.workflow_definitions (workspace_id) select unnest($1::uuid[])")
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
pub async fn load_items(
    database: &Database,
    load: &Load,
    mut progress: impl FnMut(usize),
) -> Result<Duration> {
    // Every workspace appears in the cycle once, or as often as it has slots.
    let mut cycle = Vec::new();
    for (place, limit) in load.limits.iter().enumerate() {
        let times = if load.by_limit {
            usize::try_from(*limit)?
        } else {
            1
        };
        cycle.extend(std::iter::repeat_n(i64::try_from(place)?, times));
    }
    let began = std::time::Instant::now();
    let mut loaded = 0;
    while loaded < load.items {
        let some = (load.items - loaded).min(10_000);
        sqlx::query(
            "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
             select d.workspace_id, d.id, jsonb_build_object('n', n)
             from unnest($1::bigint[], $2::bigint[]) a (n, place)
             join (select workspace_id, id, row_number() over (order by workspace_id) - 1 as place
                   from stationmaster.workflow_definitions) d using (place)
             order by n",
        )
        .bind(
            (loaded..loaded + some)
                .map(|n| i64::try_from(n).unwrap_or_default())
                .collect::<Vec<_>>(),
        )
        .bind(
            (loaded..loaded + some)
                .map(|n| cycle[n % cycle.len()])
                .collect::<Vec<_>>(),
        )
        .execute(&database.pool())
        .await?;
        loaded += some;
        progress(loaded);
    }
    Ok(began.elapsed())
}

/// What loading left to do in the background must not be timed.
pub async fn rest(database: &Database) -> Result<()> {
    for statement in ["vacuum analyze", "checkpoint"] {
        sqlx::query(statement).execute(&database.pool()).await?;
    }
    Ok(())
}

/// Removes everything that an earlier run left.
pub async fn wipe(database: &Database) -> Result<()> {
    sqlx::query(
        "truncate stationmaster_internal.queue_items, stationmaster_internal.queue_pending, stationmaster_internal.executions_active,
                  stationmaster_internal.executions_finished, stationmaster_internal.queue_hints, stationmaster_internal.queue_events,
                  stationmaster_internal.workspace_capacity, stationmaster_internal.embedded_runs, stationmaster.workspaces,
                  stationmaster.workflow_definitions, stationmaster.workflow_definition_versions cascade",
    )
    .execute(&database.pool())
    .await?;
    sqlx::query("vacuum analyze").execute(&database.pool()).await?;
    Ok(())
}
