//! How many executions were active at once: exactly, from the times in the rows; and sampled while servers run, from
//! the rows and from the engines.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::engine::Engine;
use stationmaster_core::id::WorkspaceId;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Testbed;

/// The most executions of each workspace that were active at one instant, by a sweep over the times at which they were
/// claimed and ended. An end and a claim in the same microsecond count as first the end.
pub(crate) async fn peaks(testbed: &Testbed) -> HashMap<WorkspaceId, i64> {
    let query = "
        with spans as (
            select workspace_id, claimed_at, finished_at from stationmaster_internal.executions_finished where claimed_at is not null
            union all
            select workspace_id, claimed_at, null from stationmaster_internal.executions_active
        ), steps as (
            select workspace_id, claimed_at as at, 1 as step from spans
            union all
            select workspace_id, finished_at, -1 from spans where finished_at is not null
        ), levels as (
            select workspace_id, sum(step) over (partition by workspace_id order by at, step) as level
            from steps
        )
        select workspace_id, max(level)::bigint from levels group by workspace_id";
    let rows: Vec<(WorkspaceId, i64)> = sqlx::query_as(query).fetch_all(testbed.pool()).await.unwrap();
    rows.into_iter().collect()
}

/// Every workspace whose counter differs from its rows, in one snapshot; there must never be one.
pub(crate) async fn wrong_counters(testbed: &Testbed) -> Vec<(WorkspaceId, i32, i64)> {
    let query = "
        select c.workspace_id, c.active, count(a.execution_id)
        from stationmaster_internal.workspace_capacity c
        left join stationmaster_internal.executions_active a using (workspace_id)
        group by c.workspace_id, c.active
        having c.active <> count(a.execution_id)";
    sqlx::query_as(query).fetch_all(testbed.pool()).await.unwrap()
}

/// Every item that is not in exactly one place: waiting, active, or ended and not superseded.
pub(crate) async fn misplaced_items(testbed: &Testbed) -> Vec<(Uuid, i64)> {
    let query = "
        with places as (
            select item_id from stationmaster_internal.queue_pending
            union all
            select item_id from stationmaster_internal.executions_active
            union all
            select item_id from stationmaster_internal.executions_finished where superseded_at is null
        )
        select i.id, count(p.item_id)
        from stationmaster_internal.queue_items i
        left join places p on p.item_id = i.id
        group by i.id
        having count(p.item_id) <> 1";
    sqlx::query_as(query).fetch_all(testbed.pool()).await.unwrap()
}

/// Looks at the rows again and again while servers run. Each look is one snapshot.
pub(crate) struct RowSampler {
    stop: CancellationToken,
    task: JoinHandle<Samples>,
}

/// What the looks saw.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) looks: usize,
    /// Looks at which a workspace had more rows than slots.
    pub(crate) over: Vec<(WorkspaceId, i64, i32)>,
    /// Looks at which a counter differed from its rows.
    pub(crate) miscounted: Vec<(WorkspaceId, i64, i32)>,
    /// The most rows seen of each workspace.
    pub(crate) peaks: HashMap<WorkspaceId, i64>,
}

impl RowSampler {
    pub(crate) async fn start(testbed: &Testbed) -> Self {
        let stop = CancellationToken::new();
        let mut connection = testbed.connection().await;
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let query = "
                select c.workspace_id, count(a.execution_id), c.active, c.max_concurrent
                from stationmaster_internal.workspace_capacity c
                left join stationmaster_internal.executions_active a using (workspace_id)
                group by c.workspace_id, c.active, c.max_concurrent";
            let mut samples = Samples::default();
            while !stopped.is_cancelled() {
                let rows: Vec<(WorkspaceId, i64, i32, i32)> =
                    sqlx::query_as(query).fetch_all(&mut connection).await.unwrap();
                samples.looks += 1;
                for (workspace, rows, counter, limit) in rows {
                    if rows > i64::from(limit) {
                        samples.over.push((workspace, rows, limit));
                    }
                    if rows != i64::from(counter) {
                        samples.miscounted.push((workspace, rows, counter));
                    }
                    let peak = samples.peaks.entry(workspace).or_default();
                    *peak = rows.max(*peak);
                }
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            samples
        });
        Self { stop, task }
    }

    pub(crate) async fn stop(self) -> Samples {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

/// Asks the engines again and again which runs they hold open.
///
/// Several engines cannot be asked at one instant. What is open in two rounds was open between them, all at once: an
/// execution runs once. So a sample is what two rounds have in common.
pub(crate) struct EngineSampler {
    stop: CancellationToken,
    task: JoinHandle<Vec<HashSet<Uuid>>>,
}

impl EngineSampler {
    pub(crate) fn start(engines: Vec<Arc<dyn Engine>>) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut samples = Vec::new();
            let mut before: HashSet<Uuid> = HashSet::new();
            while !stopped.is_cancelled() {
                let mut open = HashSet::new();
                for engine in &engines {
                    let page = engine.open_runs(None).await.unwrap();
                    open.extend(page.rows.into_iter().map(|run| run.execution_id.0));
                }
                samples.push(open.intersection(&before).copied().collect());
                before = open;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            samples
        });
        Self { stop, task }
    }

    /// The most runs of each workspace that the engines were seen to hold open at once.
    pub(crate) async fn stop(self, testbed: &Testbed) -> HashMap<WorkspaceId, usize> {
        self.stop.cancel();
        let samples = self.task.await.unwrap();
        let query = "select id, workspace_id from stationmaster.workflow_executions";
        let owners: Vec<(Uuid, WorkspaceId)> = sqlx::query_as(query).fetch_all(testbed.pool()).await.unwrap();
        let owners: HashMap<Uuid, WorkspaceId> = owners.into_iter().collect();
        let mut peaks: HashMap<WorkspaceId, usize> = HashMap::new();
        for sample in samples {
            let mut now: HashMap<WorkspaceId, usize> = HashMap::new();
            for run in &sample {
                *now.entry(owners[run]).or_default() += 1;
            }
            for (workspace, count) in now {
                let peak = peaks.entry(workspace).or_default();
                *peak = count.max(*peak);
            }
        }
        peaks
    }
}
