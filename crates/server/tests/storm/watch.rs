//! Those who look: at the slots in use, many times a second and each time in one snapshot, and at every row of the public relations
//! before it is pruned. What has ended must stay as it ended, and is remembered here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::world::{World, now};

const SLOTS_EVERY: Duration = Duration::from_millis(30);
const ROWS_EVERY: Duration = Duration::from_millis(500);

/// The slots of a workspace at one instant.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Slots {
    pub(crate) workspace_id: Uuid,
    pub(crate) most: i32,
    pub(crate) active: i64,
    /// When the last of them was claimed, in milliseconds.
    pub(crate) newest: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) status: String,
    pub(crate) at: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) item: Uuid,
    pub(crate) workspace: Uuid,
    pub(crate) ended: Option<Ended>,
}

/// An occurrence that was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub(crate) status: String,
    pub(crate) reason: Option<String>,
}

/// Everything that was ever seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) looks: usize,
    pub(crate) rounds: usize,
    /// Where more was active than the limit of that instant: when, and what.
    pub(crate) over: Vec<(i64, Slots)>,
    pub(crate) full: HashSet<Uuid>,
    /// The limits of each workspace, when they were first seen.
    pub(crate) limits: HashMap<Uuid, Vec<(i64, i32)>>,
    /// Items by the number in their input.
    pub(crate) numbers: BTreeMap<u64, BTreeSet<Uuid>>,
    /// How each item stood when it was last seen.
    pub(crate) items: HashMap<Uuid, String>,
    pub(crate) executions: HashMap<Uuid, Execution>,
    pub(crate) occurrences: HashMap<(Uuid, i64), Occurrence>,
    /// Alarm, from, until: many instants in one line.
    pub(crate) ranges: HashSet<(Uuid, i64, i64)>,
    pub(crate) signals: HashMap<String, (String, Option<Uuid>)>,
    /// What contradicts what was seen before.
    pub(crate) contradictions: Vec<String>,
}

pub(crate) struct Watch {
    seen: Arc<Mutex<Seen>>,
    over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

pub(crate) fn begin(world: &Arc<World>) -> Watch {
    let (seen, over) = (Arc::<Mutex<Seen>>::default(), Arc::<AtomicBool>::default());
    let slots = watch_slots(world.pool.clone(), Arc::clone(&seen), Arc::clone(&over));
    let rows = watch_rows(world.pool.clone(), Arc::clone(&seen), Arc::clone(&over));
    Watch {
        tasks: vec![tokio::spawn(slots), tokio::spawn(rows)],
        seen,
        over,
    }
}

impl Watch {
    /// After one more look at everything.
    pub(crate) async fn end(self) -> Seen {
        self.over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("whoever looks can go on");
        }
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn watch_slots(pool: PgPool, seen: Arc<Mutex<Seen>>, over: Arc<AtomicBool>) {
    let query = "
        select w.id as workspace_id, coalesce(w.max_concurrent, p.max_concurrent) as most, count(e.id) as active,
               (extract(epoch from max(e.claimed_at)) * 1000)::bigint as newest
        from stationmaster.workspaces w
        join stationmaster.plans p on p.name = w.plan
        left join stationmaster.workflow_executions e on e.workspace_id = w.id and e.status in ('STARTING', 'RUNNING')
        group by w.id, p.max_concurrent";
    while !over.load(Ordering::Relaxed) {
        // Without an answer the database is away, which is part of the weather.
        if let Ok(rows) = sqlx::query_as::<_, Slots>(query).fetch_all(&pool).await {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.looks += 1;
            for slots in rows {
                let limits = seen.limits.entry(slots.workspace_id).or_default();
                if limits.last().is_none_or(|(_, limit)| *limit != slots.most) {
                    limits.push((now(), slots.most));
                }
                if slots.active >= i64::from(slots.most) {
                    seen.full.insert(slots.workspace_id);
                }
                if slots.active > i64::from(slots.most) {
                    seen.over.push((now(), slots));
                }
            }
        }
        tokio::time::sleep(SLOTS_EVERY).await;
    }
}

async fn watch_rows(pool: PgPool, seen: Arc<Mutex<Seen>>, over: Arc<AtomicBool>) {
    loop {
        let last = over.load(Ordering::Relaxed);
        let looked = look(&pool, &seen).await;
        if last && looked.is_ok() {
            return;
        }
        tokio::time::sleep(ROWS_EVERY).await;
    }
}

type ItemRow = (Uuid, String, Option<String>);
type ExecutionRow = (Uuid, Uuid, Uuid, String, Option<i64>);
type OccurrenceRow = (Uuid, i64, String, Option<String>, Option<i64>);
type SignalRow = (String, String, Option<Uuid>);

async fn look(pool: &PgPool, seen: &Mutex<Seen>) -> Result<(), sqlx::Error> {
    let items: Vec<ItemRow> =
        sqlx::query_as("select id, status, input ->> 'n' from stationmaster.workflow_execution_queue")
            .fetch_all(pool)
            .await?;
    let executions: Vec<ExecutionRow> = sqlx::query_as(
        "select id, queue_item_id, workspace_id, status, (extract(epoch from completed_at) * 1000)::bigint
         from stationmaster.workflow_executions",
    )
    .fetch_all(pool)
    .await?;
    let occurrences: Vec<OccurrenceRow> = sqlx::query_as(
        "select alarm_id, (extract(epoch from scheduled_for) * 1000)::bigint, status, reason,
                (extract(epoch from until) * 1000)::bigint
         from stationmaster.alarm_occurrences where origin = 'schedule' and status not in ('pending', 'claimed', 'retrying')",
    )
    .fetch_all(pool)
    .await?;
    let signals: Vec<SignalRow> = sqlx::query_as(
        "select id, status, queue_item_id from stationmaster.signals where status <> 'PENDING'",
    )
    .fetch_all(pool)
    .await?;
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.rounds += 1;
    seen.items(items);
    seen.executions(executions);
    seen.occurrences(occurrences);
    seen.signals(signals);
    Ok(())
}

impl Seen {
    fn items(&mut self, rows: Vec<ItemRow>) {
        let mut once = HashSet::new();
        for (id, status, number) in rows {
            if !once.insert(id) {
                self.contradictions
                    .push(format!("item {id} stands in the queue twice at one instant"));
            }
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                self.numbers.entry(number).or_default().insert(id);
            }
            self.items.insert(id, status);
        }
    }

    fn executions(&mut self, rows: Vec<ExecutionRow>) {
        for (id, item, workspace, status, completed_at) in rows {
            let ended = completed_at.map(|at| Ended { status, at });
            let known = self.executions.entry(id).or_insert(Execution {
                item,
                workspace,
                ended: None,
            });
            if known.item != item || known.workspace != workspace {
                self.contradictions
                    .push(format!("execution {id} changed its item or its workspace"));
            }
            match (&known.ended, ended) {
                (None, ended) => known.ended = ended,
                (Some(was), now) if now.as_ref() != Some(was) => self.contradictions.push(format!(
                    "execution {id} had ended ({} at {}) and is now {now:?}",
                    was.status, was.at
                )),
                _ => {}
            }
        }
    }

    fn occurrences(&mut self, rows: Vec<OccurrenceRow>) {
        for (alarm, at, status, reason, until) in rows {
            if let Some(until) = until {
                self.ranges.insert((alarm, at, until));
                continue;
            }
            let now = Occurrence { status, reason };
            let was = self.occurrences.entry((alarm, at)).or_insert_with(|| now.clone());
            if *was != now {
                self.contradictions.push(format!(
                    "the occurrence {at} of alarm {alarm} was {was:?} and is now {now:?}"
                ));
            }
        }
    }

    fn signals(&mut self, rows: Vec<SignalRow>) {
        for (id, status, item) in rows {
            let now = (status, item);
            let was = self.signals.entry(id.clone()).or_insert_with(|| now.clone());
            if *was != now {
                self.contradictions
                    .push(format!("signal {id} was {was:?} and is now {now:?}"));
            }
        }
    }
}
