//! Somebody who counts the executions that hold a slot, all the time, and remembers the most.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::task::JoinHandle;
use uuid::Uuid;

const PAUSE: Duration = Duration::from_millis(5);

#[derive(Default)]
struct Seen {
    most: HashMap<Uuid, i64>,
    samples: usize,
}

/// Watches until it is asked.
pub(crate) struct LimitWatch {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl LimitWatch {
    pub(crate) fn on(pool: &PgPool) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let task = tokio::spawn(watch(pool.clone(), Arc::clone(&seen)));
        Self { seen, task }
    }

    /// The limits were never exceeded, and each workspace was seen at work.
    pub(crate) fn assert_kept(self, limits: &HashMap<Uuid, i64>) {
        self.task.abort();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(seen.samples > 100, "only {} looks were taken", seen.samples);
        for (workspace, limit) in limits {
            let most = seen.most.get(workspace).copied().unwrap_or_default();
            assert!(
                most <= *limit,
                "{most} executions at once in {workspace}, and its limit is {limit}"
            );
            assert!(most > 0, "{workspace} was never seen at work");
        }
    }
}

async fn watch(pool: PgPool, seen: Arc<Mutex<Seen>>) {
    let query = "select workspace_id, count(*) from stationmaster.workflow_executions
                 where status in ('STARTING', 'RUNNING') group by workspace_id";
    loop {
        // Without an answer the database is away, which some tests see to.
        if let Ok(rows) = sqlx::query_as::<_, (Uuid, i64)>(query).fetch_all(&pool).await {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.samples += 1;
            for (workspace, active) in rows {
                let most = seen.most.entry(workspace).or_default();
                *most = active.max(*most);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
