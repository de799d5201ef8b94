//! Heartbeats in a real Redis: flushed, restarted, unreachable; never a wrong takeover.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stationmaster_core::dispatchers::classify::{Class, Legacy};
use stationmaster_core::dispatchers::heartbeats::redis::{Files, RedisHeartbeats};
use stationmaster_core::dispatchers::heartbeats::{Found, Heartbeats as _};
use stationmaster_core::dispatchers::supervisor::{Options, Report};
use stationmaster_core::dispatchers::{DispatcherId, Epoch, HeartbeatChoice, Tenure};
use stationmaster_core::id::ServerId;

use crate::common::{NOOP, Testbed, eventually};
use crate::support::{Dispatch, LEASE, Server, quick, shop};

/// A Redis of the test's own.
struct Redis {
    port: u16,
    child: Option<Child>,
}

impl Redis {
    fn start() -> Self {
        let port = stationmaster_postgres::free_port().unwrap();
        let mut redis = Self { port, child: None };
        redis.resume();
        redis
    }

    /// Starts it, empty, on its port.
    fn resume(&mut self) {
        let program = std::env::var("STATIONMASTER_TEST_REDIS_SERVER")
            .expect("STATIONMASTER_TEST_REDIS_SERVER is not set: run the tests by `cargo xtask test`");
        let child = Command::new(program)
            .args([
                "--port",
                &self.port.to_string(),
                "--save",
                "",
                "--bind",
                "127.0.0.1",
                "--appendonly",
                "no",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server runs");
        self.child = Some(child);
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "redis-server does not listen"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn heartbeats(&self) -> Arc<RedisHeartbeats> {
        Arc::new(
            RedisHeartbeats::new(&format!("redis://127.0.0.1:{}/0", self.port), Files::default()).unwrap(),
        )
    }

    async fn ask(&self, words: &[&str]) -> Option<String> {
        let client = ::redis::Client::open(format!("redis://127.0.0.1:{}/0", self.port)).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = ::redis::cmd(words[0]);
        for word in &words[1..] {
            command.arg(word);
        }
        command.query_async(&mut connection).await.unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}

fn tenure(epoch: i64) -> Tenure {
    Tenure {
        dispatcher_id: shop(),
        project: "shop".to_owned(),
        task_queue: "default".to_owned(),
        owner: ServerId::new(),
        epoch: Epoch(epoch),
    }
}

#[tokio::test]
async fn a_heartbeat_is_conditional_on_its_epoch_and_removed_only_by_its_exact_name() {
    let redis = Redis::start();
    let store = redis.heartbeats();
    let (old, new) = (tenure(1), tenure(2));
    let beat = async |tenures: &[&Tenure]| {
        let tenures: Vec<Tenure> = tenures.iter().copied().cloned().collect();
        store.beat(&tenures).await.unwrap()
    };
    let other = Tenure {
        dispatcher_id: DispatcherId("other".to_owned()),
        ..old.clone()
    };
    assert_eq!(beat(&[&old]).await, 1);
    assert_eq!(beat(&[&new]).await, 1);
    assert_eq!(beat(&[&old]).await, 0, "a newer epoch is there");
    let text = redis
        .ask(&["GET", "dispatcher:heartbeat:dispatcher-shop-default"])
        .await
        .unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["dispatcher_id"], "dispatcher-shop-default");
    assert_eq!(
        (value["project"].as_str(), value["epoch"].as_i64()),
        (Some("shop"), Some(2))
    );
    assert_eq!(value["server_id"], new.owner.to_string());
    assert!(value["last_heartbeat"].as_u64().unwrap() > 1_700_000_000_000);
    let found = store.list().await.unwrap().heartbeats;
    assert_eq!(
        (found.len(), found[0].epoch, found[0].server_id),
        (1, Epoch(2), new.owner)
    );
    assert!(found[0].age < Duration::from_secs(10));
    assert!(!store.remove(&shop(), Epoch(1), new.owner).await.unwrap());
    assert!(!store.remove(&shop(), Epoch(2), old.owner).await.unwrap());
    assert!(store.remove(&shop(), Epoch(2), new.owner).await.unwrap());
    assert_eq!(store.list().await.unwrap(), Found::default());
    redis
        .ask(&["SET", "dispatcher:heartbeat:other", "not json"])
        .await;
    let found = store.list().await.unwrap();
    assert_eq!(found.heartbeats, [], "what cannot be read is not ours");
    let [unread] = &found.unread[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (unread.dispatcher_id.0.as_str(), unread.text.as_str()),
        ("other", "not json")
    );
    assert_eq!(beat(&[&new]).await, 1);
    assert_eq!(
        beat(&[&old, &other]).await,
        1,
        "a newer epoch is in one place and not in the other"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_of_an_older_deployment_are_removed_when_told_to_and_only_while_nobody_writes_them() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let redis = Redis::start();
    let dispatch = Dispatch {
        heartbeats: HeartbeatChoice::Redis(redis.heartbeats()),
        settings: stationmaster_core::dispatchers::Settings {
            // Long enough for a beat between the looks.
            second_look: Duration::from_secs(2),
            ..quick()
        },
        ..Dispatch::default()
    };
    let server = Server::with(&testbed, dispatch).await;
    eventually("it owns the dispatcher", async || {
        server.metric("dispatcher_active") == 1
    })
    .await;
    let key = |id: &str| format!("dispatcher:heartbeat:{id}");
    let (dead, alive, other) = (
        key("dispatcher-shop-default-2abC9dEf01"),
        key("dispatcher-shop-default-7hK2m9Qx03"),
        key("dispatcher-crm-default-2abC9dEf01"),
    );
    for name in [&dead, &alive, &other] {
        redis
            .ask(&["SET", name, r#"{"server_id": "old", "last_heartbeat": 1}"#])
            .await;
    }
    let look = async |dry_run, legacy| {
        let options = Options { dry_run, legacy };
        let report = server
            .station
            .reconcile_dispatchers(options, "tester".into())
            .await;
        report.unwrap().unwrap()
    };
    let shown = look(false, Legacy::Leave).await;
    let legacy = |report: &Report| {
        let findings = report.findings.iter();
        findings.filter(|finding| finding.class == Class::Legacy).count()
    };
    assert_eq!((legacy(&shown), shown.done.len()), (2, 0), "{shown:?}");
    let shown = look(true, Legacy::Remove).await;
    assert_eq!((legacy(&shown), shown.done.len()), (2, 0), "{shown:?}");
    let (done, ()) = tokio::join!(look(false, Legacy::Remove), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        redis
            .ask(&["SET", &alive, r#"{"server_id": "old", "last_heartbeat": 2}"#])
            .await;
    });
    let names: Vec<&str> = done
        .done
        .iter()
        .map(|deed| deed.dispatcher_id.0.as_str())
        .collect();
    assert_eq!(names, ["dispatcher-shop-default-2abC9dEf01"], "{done:?}");
    let there = async |name: &String| redis.ask(&["GET", name]).await.is_some();
    assert!(!there(&dead).await);
    assert!(there(&alive).await, "its dispatcher is at work");
    assert!(there(&other).await, "no project of ours");
    let audited = "select count(*) from stationmaster.audit where actor = 'tester' and action = 'dispatcher.heartbeat_removed' and subject = 'dispatcher-shop-default-2abC9dEf01'";
    assert_eq!(testbed.number(audited).await, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_flushed_restarted_or_away_never_takes_a_dispatcher_from_its_owner() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let mut redis = Redis::start();
    let dispatch = || Dispatch {
        heartbeats: HeartbeatChoice::Redis(redis.heartbeats()),
        ..Dispatch::default()
    };
    let owner = Server::with(&testbed, dispatch()).await;
    eventually("it owns the dispatcher", async || {
        owner.metric("dispatcher_active") == 1
    })
    .await;
    let standby = Server::with(&testbed, dispatch()).await;
    let store = redis.heartbeats();
    let beats = async || store.list().await.map_or(0, |found| found.heartbeats.len());
    eventually("its heartbeat is there", async || beats().await == 1).await;
    assert_eq!(
        testbed.count("dispatcher_heartbeats").await,
        0,
        "they are kept in one place"
    );

    redis.ask(&["FLUSHALL"]).await;
    eventually("it is written again after a flush", async || beats().await == 1).await;

    redis.stop();
    eventually("readiness says what is wrong", async || {
        let problems = owner.station.readiness().problems;
        problems
            .iter()
            .any(|problem| problem.contains("the heartbeats in Redis cannot be reached"))
    })
    .await;
    let away_since = Instant::now();
    while away_since.elapsed() < LEASE * 2 {
        testbed.signals("paid", 10).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    redis.resume();
    eventually("it is written again after a restart", async || beats().await == 1).await;
    eventually("both are ready again", async || {
        owner.station.readiness().problems.is_empty() && standby.station.readiness().problems.is_empty()
    })
    .await;
    eventually("everything was routed meanwhile", async || {
        testbed.in_status("PENDING").await == 0
    })
    .await;
    assert_eq!(
        testbed.story().await,
        ["fresh"],
        "nothing was taken, evicted or ended"
    );

    let dead = owner.id();
    owner.kill();
    eventually("the standby takes over after the lease", async || {
        standby.metric("dispatcher_active") == 1
    })
    .await;
    eventually("the heartbeat is the new owner's", async || {
        store
            .list()
            .await
            .unwrap()
            .heartbeats
            .iter()
            .all(|beat| beat.server_id.0 != dead && beat.epoch == Epoch(2))
    })
    .await;
    standby.stop().await;
    assert_eq!(beats().await, 0, "whoever leaves last takes its heartbeat along");
}
