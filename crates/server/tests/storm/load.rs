//! Those who ask: for executions, for alarms, by signals, for locks. Each writes into the ledger what it asked for and what it was
//! told, and repeats a request whose answer it has not heard under the same key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::ledger::{Asked, Holding, Signal};
use crate::world::{KINDS, Kind, REPEATED, ROOMS, World, now};

/// No more of a room wait at once than this for each of its slots.
const BACKLOG: usize = 6;
const LOCKERS: u64 = 4;

pub(crate) struct Load {
    over: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Load {
    /// No more is asked for; what is being asked is brought to its end.
    pub(crate) async fn end(mut self) {
        self.over.store(true, Ordering::Relaxed);
        while let Some(done) = self.tasks.join_next().await {
            done.expect("whoever asks can go on");
        }
    }
}

pub(crate) fn begin(world: &Arc<World>, seed: u64) -> Load {
    let over = Arc::<AtomicBool>::default();
    let mut tasks = JoinSet::new();
    let chance = |lane: u64| StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(lane));
    tasks.spawn(executions(Arc::clone(world), Arc::clone(&over), chance(1)));
    tasks.spawn(signals(Arc::clone(world), Arc::clone(&over), chance(2)));
    tasks.spawn(alarms(Arc::clone(world), Arc::clone(&over), chance(3)));
    for locker in 0..LOCKERS {
        tasks.spawn(locks(Arc::clone(world), Arc::clone(&over), chance(4 + locker)));
    }
    Load { over, tasks }
}

async fn nap(chance: &mut StdRng, milliseconds: std::ops::Range<u64>) {
    let time = chance.random_range(milliseconds);
    tokio::time::sleep(Duration::from_millis(time)).await;
}

/// Keeps a backlog before every room.
async fn executions(world: Arc<World>, over: Arc<AtomicBool>, mut chance: StdRng) {
    let mut asking = JoinSet::new();
    let mut turn = 0;
    while !over.load(Ordering::Relaxed) {
        nap(&mut chance, 30..90).await;
        turn += 1;
        let room = chance.random_range(0..ROOMS);
        let way = chance.random_range(0..100);
        let kind = KINDS[[0, 0, 0, 0, 0, 0, 1, 1, 2, 2][chance.random_range(0..10)]];
        if turn % 20 == 1 {
            world.waiting().await;
        }
        let waits = world
            .ledger
            .open()
            .backlog
            .get(&room)
            .copied()
            .unwrap_or_default();
        if waits < BACKLOG * usize::try_from(world.rooms[room].limit).unwrap_or(1) {
            *world.ledger.open().backlog.entry(room).or_default() += 1;
            asking.spawn(enqueue(Arc::clone(&world), room, kind, way));
        }
        while asking.try_join_next().is_some() {}
    }
    while asking.join_next().await.is_some() {}
}

async fn enqueue(world: Arc<World>, room: usize, kind: Kind, way: u32) {
    let number = world.ledger.number();
    let way = match way {
        0..25 => "by SQL",
        25..32 => "by a long transaction",
        32..36 => "by one that is rolled back",
        _ => "by HTTP",
    };
    let asked = Asked {
        kind,
        way,
        item: None,
        unwanted: way == "by one that is rolled back",
    };
    world.ledger.open().items.insert(number, asked);
    let item = match way {
        "by HTTP" => by_http(&world, room, kind, number).await,
        _ => by_sql(&world, room, kind, number, way).await,
    };
    if let Some(asked) = world.ledger.open().items.get_mut(&number) {
        asked.item = item;
    }
}

async fn by_http(world: &World, room: usize, kind: Kind, number: u64) -> Option<Uuid> {
    let room = &world.rooms[room];
    let body = json!({
        "workspace_id": room.id,
        "workflow_definition_id": room.definitions[&kind],
        "input": { "n": number },
        "idempotency_key": format!("n-{number}"),
    });
    let (status, answer) = world
        .insist(REPEATED, Method::POST, "/v1/executions", Some(&body))
        .await?;
    if status >= 300 {
        world
            .ledger
            .wrong(format!("an enqueue was answered {status}: {answer}"));
        return None;
    }
    answer["id"].as_str()?.parse().ok()
}

/// Acknowledged when the commit was.
async fn by_sql(world: &World, room: usize, kind: Kind, number: u64, way: &str) -> Option<Uuid> {
    let room = &world.rooms[room];
    let mut transaction = world.pool.begin().await.ok()?;
    let query = "select stationmaster.enqueue_execution($1, $2, jsonb_build_object('n', $3::bigint))";
    let query = sqlx::query_scalar(query)
        .bind(room.id)
        .bind(room.definitions[&kind])
        .bind(i64::try_from(number).unwrap_or_default());
    let item = query.fetch_one(&mut *transaction).await.ok()?;
    if way != "by SQL" {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
    if way == "by one that is rolled back" {
        let _ = transaction.rollback().await;
        return None;
    }
    transaction.commit().await.ok()?;
    Some(item)
}

async fn signals(world: Arc<World>, over: Arc<AtomicBool>, mut chance: StdRng) {
    let mut asking = JoinSet::new();
    while !over.load(Ordering::Relaxed) {
        nap(&mut chance, 250..700).await;
        let known = chance.random_range(0..20) > 0;
        let by_sql = chance.random_range(0..4) == 0;
        asking.spawn(signal(Arc::clone(&world), known, by_sql));
        while asking.try_join_next().is_some() {}
    }
    while asking.join_next().await.is_some() {}
}

/// Sent twice by those who were told that it was taken: a repeat changes nothing.
async fn signal(world: Arc<World>, known: bool, by_sql: bool) {
    let number = world.ledger.number();
    let id = format!("signal-{number}");
    let sent = Signal {
        number,
        acknowledged: false,
        known,
    };
    world.ledger.open().signals.insert(id.clone(), sent);
    let name = if known { "thunder" } else { "nobody-knows" };
    let acknowledged = if by_sql {
        let query =
            "select stationmaster.send_signal('storm', $1, jsonb_build_object('n', $2::bigint), id => $3)";
        let query = sqlx::query(query)
            .bind(name)
            .bind(i64::try_from(number).unwrap_or_default())
            .bind(&id);
        query.execute(&world.pool).await.is_ok()
    } else {
        let body = json!({ "project": "storm", "name": name, "payload": { "n": number }, "id": id });
        let mut taken = false;
        for _ in 0..2 {
            match world
                .insist(REPEATED, Method::POST, "/v1/signals", Some(&body))
                .await
            {
                Some((200..300, _)) => taken = true,
                Some((status, answer)) => world
                    .ledger
                    .wrong(format!("a signal was answered {status}: {answer}")),
                None => {}
            }
        }
        taken
    };
    if let Some(sent) = world.ledger.open().signals.get_mut(&id) {
        sent.acknowledged = acknowledged;
    }
}

/// Alarms for once; some are cancelled.
async fn alarms(world: Arc<World>, over: Arc<AtomicBool>, mut chance: StdRng) {
    let mut asking = JoinSet::new();
    while !over.load(Ordering::Relaxed) {
        nap(&mut chance, 300..900).await;
        let delay = chance.random_range(0..4_000);
        let (cancelled, by_sql) = (chance.random_range(0..10) == 0, chance.random_range(0..4) == 0);
        asking.spawn(alarm(Arc::clone(&world), delay, cancelled, by_sql));
        while asking.try_join_next().is_some() {}
    }
    while asking.join_next().await.is_some() {}
}

async fn alarm(world: Arc<World>, delay: u32, cancelled: bool, by_sql: bool) {
    let number = world.ledger.number();
    let seconds = f64::from(delay) / 1_000.0;
    let id: Option<Uuid> = if by_sql {
        let query =
            "select stationmaster.set_alarm($1, delay => make_interval(secs => $2), target_url => $3)";
        let query = sqlx::query_scalar(query)
            .bind(world.rooms[0].id)
            .bind(seconds)
            .bind(world.wake_url());
        query.fetch_one(&world.pool).await.ok()
    } else {
        let body = json!({
            "workspace_id": world.rooms[0].id,
            "delay": seconds,
            "target_url": world.wake_url(),
            "idempotency_key": format!("alarm-{number}"),
        });
        match world
            .insist(REPEATED, Method::POST, "/v1/alarms", Some(&body))
            .await
        {
            Some((200..300, answer)) => answer["alarm"]["id"]
                .as_str()
                .or_else(|| answer["id"].as_str())
                .and_then(|id| id.parse().ok()),
            Some((status, answer)) => {
                world
                    .ledger
                    .wrong(format!("an alarm was answered {status}: {answer}"));
                None
            }
            None => None,
        }
    };
    let Some(id) = id else {
        return;
    };
    world.ledger.open().once.insert(id, cancelled);
    if cancelled {
        let path = format!("/v1/alarms/{id}");
        world.insist(REPEATED, Method::DELETE, &path, None).await;
    }
}

/// Takes one of two locks, keeps it for a while, and gives it back or forgets it.
async fn locks(world: Arc<World>, over: Arc<AtomicBool>, mut chance: StdRng) {
    while !over.load(Ordering::Relaxed) {
        nap(&mut chance, 50..400).await;
        let name = ["north", "south"][chance.random_range(0..2)];
        let (keep, forget) = (chance.random_range(20..900), chance.random_range(0..5) == 0);
        let path = format!("/v1/locks/{name}");
        let body = json!({ "at_most": 1.5, "at_least": 0.0 });
        let asked = now();
        let Some((200..300, answer)) = world.ask(Method::POST, &path, Some(&body)).await else {
            continue;
        };
        let from = now();
        let token = answer["token"].as_i64();
        let until = answer["until"]
            .as_str()
            .and_then(|until| until.parse::<jiff::Timestamp>().ok());
        let (Some(token), Some(until)) = (token, until) else {
            world
                .ledger
                .wrong(format!("a lock was answered without token and end: {answer}"));
            continue;
        };
        tokio::time::sleep(Duration::from_millis(keep)).await;
        world.ledger.open().holdings.push(Holding {
            name: name.to_owned(),
            token,
            asked,
            from,
            until: until.as_millisecond().min(if forget { i64::MAX } else { now() }),
        });
        if !forget {
            let path = format!("{path}?token={token}");
            world.ask(Method::DELETE, &path, None).await;
        }
    }
}
