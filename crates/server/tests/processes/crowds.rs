//! More than anybody should have to do with at once: ten thousand connections that ask nothing, more than there are files for, and a
//! million signals to one project.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::floods::{Stage, answered_in_time};
use crate::support::{ENDLESS, Launch, SHORT, TestDatabase, eventually, setting, with_open_files};

/// Connections that ask nothing.
const CROWD: usize = 10_000;
/// Signals in a request.
const BATCH: usize = 500;
/// Those who send signals at once.
const SENDERS: usize = 4;
/// What is left of the pace while they send as fast as they can, on the same machine as everything else: nothing holds the work up but
/// the processor.
const LEAST: f64 = 0.2;

/// A process with so many connections to a server, which come back when they are closed.
struct Crowd(Child);

impl Crowd {
    /// It is this very program: a process may not have so many files open by itself.
    fn before(address: &str, count: usize) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = with_open_files(count + 200, program.to_str().unwrap());
        let mut child = command
            .args([
                "crowds::a_crowd_that_was_asked_for",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env("STATIONMASTER_CROWD_AT", address)
            .env("STATIONMASTER_CROWD_COUNT", count.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let came = lines.any(|line| line.is_ok_and(|line| line.contains("everybody is here")));
        assert!(came, "the crowd did not come: {:?}", child.wait());
        // What else it says must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: the crowd of those below, in a process of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is started by others"]
async fn a_crowd_that_was_asked_for() {
    let (address, count) = (
        setting("STATIONMASTER_CROWD_AT"),
        setting("STATIONMASTER_CROWD_COUNT"),
    );
    let count: usize = count.parse().unwrap();
    let here = Arc::new(AtomicUsize::new(0));
    let mut crowd = JoinSet::new();
    for number in 0..count {
        let (address, here) = (address.clone(), Arc::clone(&here));
        crowd.spawn(async move {
            // Some thousand a second come, as the machine has both sides to carry.
            tokio::time::sleep(Duration::from_millis(number as u64 / 3)).await;
            loop {
                if let Ok(stream) = TcpStream::connect(&address).await {
                    here.fetch_add(1, Ordering::Relaxed);
                    // Nothing ever comes but the end.
                    let _ = stream.readable().await;
                    here.fetch_sub(1, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
    }
    // Some are always on their way back.
    while here.load(Ordering::Relaxed) < count * 9 / 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("everybody is here");
    crowd.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_connections_that_ask_nothing_cost_no_lease_and_leave_the_work_its_pace() {
    // More may be open than the crowd needs, and the server takes them all.
    let stage = Stage::with(&[], |launch| {
        launch
            .with("HTTP__MAX_CONNECTIONS", &(CROWD + 500).to_string())
            .with_open_files(CROWD * 7 / 5 + 500)
    })
    .await;
    assert_eq!(stage.server.said("The limit of open files leaves room"), 0);
    stage
        .stands("ten thousand connections", || {
            Crowd::before(&stage.address, CROWD)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_would_take_every_open_file_leaves_the_work_its_own() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(4, SHORT).await;
    let server = Launch::on(&database)
        .with("HTTP__MAX_CONNECTIONS", "1024")
        .with_open_files(256)
        .start_ready()
        .await;
    let crowd = Crowd::before(&server.address().unwrap(), 120);
    let mut more = JoinSet::new();
    for _ in 0..400 {
        let address = server.address().unwrap();
        more.spawn(async move {
            loop {
                if let Ok(stream) = TcpStream::connect(&address).await {
                    let _ = stream.readable().await;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    // Connections to the database have to be made anew while the crowd is there.
    for _ in 0..3 {
        let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid() and application_name like 'stationmaster%'";
        assert!(database.number(cut).await > 0, "somebody was connected");
        let done = database.count("COMPLETED").await;
        database.enqueue(workflow, 20).await;
        database.until_count("COMPLETED", done + 20).await;
    }
    let address = server.address().unwrap();
    for path in ["/livez", "/readyz"] {
        eventually("it is let in", async || {
            let answer = crate::support::get(&address, path);
            let answer = tokio::time::timeout(Duration::from_secs(1), answer).await;
            matches!(answer, Ok(Some((200, _))))
        })
        .await;
    }
    assert_eq!(server.said("lease had run out"), 0, "{}", server.log());
    assert_eq!(server.said("The limit of open files leaves room"), 1);
    drop((crowd, more));
}

/// So many signals to one project, beside work that has to keep its pace; each becomes an item, once, and no lease is lost.
async fn signals_come(count: usize) {
    let stage = Stage::with(&[], |launch| launch.with("HTTP__RATE_LIMIT", "100000")).await;
    // What they become waits: the queue of its workspace is not what is tried here.
    let (workspace, definition) = stage.database.workflow(0, ENDLESS).await;
    let trigger = "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('flood', 'drop', $1)";
    sqlx::query(trigger)
        .bind(definition)
        .execute(&stage.database.pool)
        .await
        .unwrap();
    let base = stage.pace().await;
    let began = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        let (next, address, token) = (Arc::clone(&next), stage.address.clone(), stage.admin.clone());
        senders.spawn(async move { send(&address, &token, &next, count).await });
    }
    let mut kept = Vec::new();
    let flood = async {
        while !senders.is_empty() {
            kept.push(stage.pace().await / base);
            stage.work_on(1_000).await;
            while let Some(sent) = senders.try_join_next() {
                sent.unwrap();
            }
        }
    };
    answered_in_time("signals", &stage.server, flood).await;
    let sent = began.elapsed();
    let settled = "select count(*) from stationmaster.signals where project = 'flood' and status = 'ROUTED'";
    let wanted = i64::try_from(count).unwrap();
    // As long as it goes on, it is waited for.
    let mut before = -1;
    loop {
        let now = stage.database.number(settled).await;
        if now == wanted {
            break;
        }
        assert!(
            now > before,
            "{now} of {wanted} are routed, and it does not go on"
        );
        before = now;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let best = kept.iter().copied().fold(0.0, f64::max);
    kept.sort_by(f64::total_cmp);
    println!(
        "{count} signals in {sent:.1?}, all routed after {:.1?}; of the pace of {base:.0} executions a second {:.2} were kept (median), {best:.2} (best)",
        began.elapsed(),
        kept[kept.len() / 2]
    );
    let query = "select count(distinct queue_item_id) from stationmaster.signals where project = 'flood'";
    assert_eq!(stage.database.number(query).await, wanted, "one item for each");
    let query = "select count(*) from stationmaster_internal.queue_items where workspace_id = $1";
    let items: i64 = sqlx::query_scalar(query)
        .bind(workspace)
        .fetch_one(&stage.database.pool)
        .await
        .unwrap();
    assert_eq!(items, wanted, "and no others");
    assert_eq!(
        stage.server.said("lease had run out"),
        0,
        "{}",
        stage.server.log()
    );
    assert!(best >= LEAST, "{best:.2} of the pace is kept");
}

/// Sends batches until all are sent; whoever is told to wait does.
async fn send(address: &str, token: &str, next: &AtomicUsize, count: usize) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    loop {
        let from = next.fetch_add(BATCH, Ordering::Relaxed);
        if from >= count {
            return;
        }
        let ids = from..(from + BATCH).min(count);
        let items: Vec<_> = ids
            .map(|number| json!({ "id": format!("drop-{number}"), "project": "flood", "name": "drop", "payload": { "n": number } }))
            .collect();
        let body = json!({ "items": items });
        loop {
            let request = client
                .post(format!("http://{address}/v1/signals/bulk"))
                .bearer_auth(token)
                .json(&body);
            let status = request.send().await.unwrap().status();
            if status.is_success() {
                break;
            }
            assert!([429, 503].contains(&status.as_u16()), "{status}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_signals_to_one_project_are_routed_once_each_and_cost_no_lease() {
    signals_come(20_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "as many as one likes: cargo xtask flood"]
async fn the_flood_of_signals_that_was_asked_for() {
    let count = setting("STATIONMASTER_FLOOD_SIGNALS");
    signals_come(count.parse().expect("a number of signals")).await;
}
