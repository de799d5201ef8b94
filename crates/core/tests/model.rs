//! Everything at once, by chance: people and servers do what they do in random order, and what must hold is looked at all
//! the time. The seed is printed; `STATIONMASTER_TEST_SEED` repeats it.

#![allow(
    clippy::unwrap_used,
    reason = "what fails fails the test, and the panic says where"
)]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sqlx::AssertSqlSafe;
use stationmaster_core::catalogue;
use stationmaster_core::engine::CloseStatus;
use stationmaster_core::executions::Settings;
use stationmaster_core::executions::enqueue::{self, Enqueue};
use stationmaster_core::executions::operate::{self, Complete};
use stationmaster_core::id::{DefinitionId, ExecutionId, ItemId, WorkspaceId};
use stationmaster_core::retry::Backoff;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use common::counting::{misplaced_items, peaks, wrong_counters};
use common::{FAIL, NOOP, Server, Testbed, UNKNOWN_TYPE, wait};

const WORKSPACES: usize = 5;
const HIGHEST_LIMIT: i32 = 6;
const FOR: Duration = Duration::from_secs(6);

/// The highest limit that a workspace ever had.
type Limits = Arc<Mutex<HashMap<WorkspaceId, i32>>>;

struct Model {
    testbed: Arc<Testbed>,
    chance: StdRng,
    workspaces: Vec<WorkspaceId>,
    definitions: Vec<(WorkspaceId, DefinitionId)>,
    items: Vec<ItemId>,
    servers: Vec<Server>,
    limits: Limits,
    done: HashMap<&'static str, usize>,
}

impl Model {
    async fn new(seed: u64) -> Self {
        let mut model = Self {
            testbed: Arc::new(Testbed::new().await),
            chance: StdRng::seed_from_u64(seed),
            workspaces: Vec::new(),
            definitions: Vec::new(),
            items: Vec::new(),
            servers: Vec::new(),
            limits: Limits::default(),
            done: HashMap::new(),
        };
        for _ in 0..WORKSPACES {
            let limit = model.chance.random_range(1..=3);
            let workspace = model.testbed.workspace(limit).await;
            model.limits.lock().unwrap().insert(workspace, limit);
            model.workspaces.push(workspace);
            model.add_definition(workspace).await;
        }
        for _ in 0..2 {
            model.start_server().await;
        }
        model
    }

    async fn add_definition(&mut self, workspace: WorkspaceId) {
        let wait = wait(self.chance.random_range(0.0..0.08));
        // With servers there, what they could not run would be refused.
        let refused = if self.servers.is_empty() {
            UNKNOWN_TYPE
        } else {
            FAIL
        };
        let graph = [NOOP, NOOP, wait.as_str(), wait.as_str(), FAIL, refused][self.chance.random_range(0..6)];
        let definition = self.testbed.definition(workspace, graph).await;
        self.definitions.push((workspace, definition));
    }

    async fn start_server(&mut self) {
        let backoff = Backoff {
            base: Duration::from_millis(20),
            cap: Duration::from_millis(100),
        };
        let batch_size = self.chance.random_range(1..20);
        let settings = Settings {
            poll_interval: Duration::from_millis(300),
            batch_size,
            retry: backoff,
            ..Settings::default()
        };
        let server = self.testbed.server(settings).await;
        self.servers.push(server);
    }

    fn workspace(&mut self) -> WorkspaceId {
        self.workspaces[self.chance.random_range(0..self.workspaces.len())]
    }

    fn definition(&mut self) -> (WorkspaceId, DefinitionId) {
        self.definitions[self.chance.random_range(0..self.definitions.len())]
    }

    fn item(&mut self) -> Option<ItemId> {
        // Mostly young ones: the old ones have ended long ago.
        let young = self.items.len().min(200);
        let some = if self.chance.random_bool(0.8) {
            young
        } else {
            self.items.len()
        };
        let age = self.chance.random_range(0..some.max(1));
        self.items.iter().rev().nth(age).copied()
    }

    async fn step(&mut self) {
        let name = match self.chance.random_range(0..100) {
            0..35 => self.enqueue().await,
            35..45 => self.enqueue_by_sql().await,
            45..60 => self.cancel().await,
            60..70 => self.retry().await,
            70..77 => self.prioritise().await,
            77..82 => self.pause_workspace().await,
            82..87 => self.pause_definition().await,
            87..92 => self.change_limit().await,
            92..94 => self.replace_definition().await,
            94..97 => self.complete().await,
            _ => self.change_servers().await,
        };
        *self.done.entry(name).or_default() += 1;
    }

    async fn enqueue(&mut self) -> &'static str {
        let (workspace, definition) = self.definition();
        let count = self.chance.random_range(1..15);
        let requests: Vec<Enqueue> = (0..count)
            .map(|_| {
                let later = self.chance.random_bool(0.2);
                let wait = jiff::SignedDuration::from_millis(self.chance.random_range(0..800));
                Enqueue {
                    priority: self.chance.random_range(-2..=2),
                    run_at: later.then(|| jiff::Timestamp::now() + wait),
                    ..Enqueue::new(workspace.0, definition.0)
                }
            })
            .collect();
        let answers = enqueue::enqueue_all(&self.testbed.database, &requests, "model")
            .await
            .unwrap();
        self.items
            .extend(answers.into_iter().map(|answer| ItemId(answer.id)));
        "enqueue"
    }

    async fn enqueue_by_sql(&mut self) -> &'static str {
        let (workspace, definition) = self.definition();
        let id = Uuid::now_v7();
        let keep = self.chance.random_bool(0.7);
        let end = if keep { "commit" } else { "rollback" };
        let statements = format!(
            "begin; insert into stationmaster.workflow_execution_queue (id, workspace_id, workflow_definition_id)
             values ('{id}', '{workspace}', '{definition}'); {end}"
        );
        sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(self.testbed.pool())
            .await
            .unwrap();
        if keep {
            self.items.push(ItemId(id));
        }
        "enqueue by sql"
    }

    async fn cancel(&mut self) -> &'static str {
        if let Some(item) = self.item() {
            operate::cancel(&self.testbed.database, item.0, None, "model")
                .await
                .unwrap();
        }
        "cancel"
    }

    async fn retry(&mut self) -> &'static str {
        if let Some(item) = self.item() {
            match operate::retry(&self.testbed.database, item, "model").await {
                Ok(()) | Err(operate::Error::WrongState(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        "retry"
    }

    async fn prioritise(&mut self) -> &'static str {
        let priority = self.chance.random_range(-3..=3);
        if let Some(item) = self.item() {
            match operate::set_priority(&self.testbed.database, item, priority, "model", None).await {
                Ok(()) | Err(operate::Error::WrongState(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        "prioritise"
    }

    async fn pause_workspace(&mut self) -> &'static str {
        let (workspace, paused) = (self.workspace(), self.chance.random_bool(0.4));
        self.testbed.pause(workspace, paused).await;
        "pause a workspace"
    }

    async fn pause_definition(&mut self) -> &'static str {
        let (definition, paused) = (self.definition(), self.chance.random_bool(0.4));
        self.testbed.pause_definition(definition, paused).await;
        "pause a definition"
    }

    async fn change_limit(&mut self) -> &'static str {
        let (workspace, limit) = (self.workspace(), self.chance.random_range(1..=HIGHEST_LIMIT));
        {
            let mut limits = self.limits.lock().unwrap();
            let highest = limits.entry(workspace).or_default();
            *highest = limit.max(*highest);
        }
        self.testbed.limit(workspace, limit).await;
        "change a limit"
    }

    async fn replace_definition(&mut self) -> &'static str {
        let gone = self.chance.random_range(0..self.definitions.len());
        let (workspace, definition) = self.definitions.swap_remove(gone);
        catalogue::delete_definition(&self.testbed.database, definition, None)
            .await
            .unwrap();
        self.add_definition(workspace).await;
        "replace a definition"
    }

    async fn complete(&mut self) -> &'static str {
        let query = "select execution_id from stationmaster_internal.executions_active limit 1";
        let active: Option<ExecutionId> = sqlx::query_scalar(query)
            .fetch_optional(self.testbed.pool())
            .await
            .unwrap();
        if let Some(execution) = active {
            let completion = Complete {
                force: false,
                status: CloseStatus::Completed,
                output: None,
                error: None,
            };
            match operate::complete(&self.testbed.database, execution, completion, "model").await {
                Ok(()) | Err(operate::Error::WrongState(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        "complete"
    }

    async fn change_servers(&mut self) -> &'static str {
        if self.servers.len() < 4 && (self.servers.len() <= 1 || self.chance.random_bool(0.5)) {
            self.start_server().await;
            return "start a server";
        }
        let leaving = self.chance.random_range(0..self.servers.len());
        self.servers.swap_remove(leaving).stop().await;
        "stop a server"
    }

    async fn drain(&mut self) {
        for workspace in &self.workspaces {
            self.testbed.pause(*workspace, false).await;
        }
        for definition in &self.definitions {
            self.testbed.pause_definition(*definition, false).await;
        }
        let testbed = Arc::clone(&self.testbed);
        let left = "select (select count(*) from stationmaster_internal.queue_pending)
                         + (select count(*) from stationmaster_internal.executions_active)";
        // However many one workspace of limit 1 was given by chance: slow is not stuck.
        let (mut fewest, mut since) = (i64::MAX, Instant::now());
        while fewest > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = testbed.number(left).await;
            if now < fewest {
                (fewest, since) = (now, Instant::now());
            }
            assert!(
                since.elapsed() < Duration::from_secs(30),
                "this does not end:\n{}",
                what_is_left(&testbed).await
            );
        }
        for server in self.servers.drain(..) {
            server.stop().await;
        }
    }
}

/// What waits or is active, in groups that tell why.
async fn what_is_left(testbed: &Testbed) -> String {
    let query = "
        select json_build_object('where', 'waiting', 'lane', p.lane, 'due', p.run_at <= now(), 'definition', d.id is not null,
                                 'paused', d.paused, 'ready', c.ready, 'active', c.active, 'limit', c.max_concurrent)::text
        from stationmaster_internal.queue_pending p
        left join stationmaster.workflow_definitions d on d.id = p.workflow_definition_id
        left join stationmaster_internal.workspace_capacity c on c.workspace_id = p.workspace_id
        union all
        select json_build_object('where', 'active', 'state', a.state, 'holder is alive', s.id is not null,
                                 'lease', a.lease_until - now(), 'cancel', r.execution_id is not null)::text
        from stationmaster_internal.executions_active a
        left join stationmaster_internal.servers s on s.id = a.holder
        left join stationmaster_internal.cancel_requests r on r.execution_id = a.execution_id";
    let rows: Vec<String> = sqlx::query_scalar(query).fetch_all(testbed.pool()).await.unwrap();
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        *groups.entry(row).or_default() += 1;
    }
    let lines: Vec<String> = groups
        .into_iter()
        .map(|(row, count)| format!("{count} x {row}"))
        .collect();
    lines.join(
        "
",
    )
}

/// Looks at what must hold until it is told to stop. Answers how often it looked.
fn watch(testbed: Arc<Testbed>, limits: Limits, stop: CancellationToken) -> JoinHandle<usize> {
    tokio::spawn(async move {
        let mut looks = 0;
        while !stop.is_cancelled() {
            assert_eq!(
                wrong_counters(&testbed).await,
                [],
                "counters that differ from their rows"
            );
            assert_eq!(
                misplaced_items(&testbed).await,
                [],
                "items that are not in exactly one place"
            );
            let query = "select workspace_id, count(*)::integer from stationmaster_internal.executions_active group by workspace_id";
            let active: Vec<(WorkspaceId, i32)> =
                sqlx::query_as(query).fetch_all(testbed.pool()).await.unwrap();
            for (workspace, active) in active {
                let highest = limits.lock().unwrap()[&workspace];
                assert!(
                    active <= highest,
                    "{active} active in {workspace}, never allowed more than {highest}"
                );
            }
            looks += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        looks
    })
}

fn seed() -> u64 {
    match std::env::var("STATIONMASTER_TEST_SEED") {
        Ok(seed) => seed.parse().expect("STATIONMASTER_TEST_SEED is a number"),
        Err(_) => rand::rng().random_range(0..u64::MAX),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_people_and_servers_do_the_invariants_hold_and_everything_ends() {
    let seed = seed();
    println!("STATIONMASTER_TEST_SEED={seed}");
    let mut model = Model::new(seed).await;
    let stop = CancellationToken::new();
    let watcher = watch(
        Arc::clone(&model.testbed),
        Arc::clone(&model.limits),
        stop.clone(),
    );
    let began = Instant::now();
    while began.elapsed() < FOR {
        assert!(!watcher.is_finished(), "an invariant was broken; see above");
        model.step().await;
    }
    model.drain().await;
    stop.cancel();
    let looks = watcher.await.unwrap();
    println!("{} items, {looks} looks, {:?}", model.items.len(), model.done);
    assert!(looks > 20, "only {looks} looks");

    let testbed = &model.testbed;
    assert_eq!(
        testbed.count("queue_items").await,
        i64::try_from(model.items.len()).unwrap()
    );
    assert_eq!(misplaced_items(testbed).await, []);
    assert_eq!(wrong_counters(testbed).await, []);
    for (workspace, peak) in peaks(testbed).await {
        assert!(
            peak <= i64::from(model.limits.lock().unwrap()[&workspace]),
            "{peak} at once in {workspace}"
        );
    }
    let twice =
        "select count(*) from (select from stationmaster_internal.executions_finished where status = 'COMPLETED'
                                       group by item_id having count(*) > 1) twice";
    assert_eq!(testbed.number(twice).await, 0, "what was completed was run again");
    let lost = "select count(*) from stationmaster_internal.executions_finished where recoveries > 0";
    assert_eq!(
        testbed.number(lost).await,
        0,
        "no server was lost, so nothing was recovered"
    );
}
