//! Carries the forecast out, tells how it goes, and lets everything come to rest in the end.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Row as _;
use tokio::task::JoinSet;

use crate::forecast::{Fault, Forecast};
use crate::world::{World, now};

/// How long the rest of the work may take once the weather is fair.
const PATIENCE: Duration = Duration::from_mins(3);
/// Operators insist for longer than any outage.
const INSISTENCE: Duration = Duration::from_mins(1);

/// Everything that the forecast tells, each at its time.
pub(crate) async fn rage(world: &Arc<World>, forecast: &Forecast, length: Duration) {
    let begun = Instant::now();
    let progress = tokio::spawn(progress(Arc::clone(world), length));
    let mut tasks = JoinSet::new();
    for event in &forecast.events {
        tokio::time::sleep_until((begun + event.at).into()).await;
        tasks.spawn(strike(Arc::clone(world), event.fault.clone()));
        while let Some(done) = tasks.try_join_next() {
            done.expect("a fault could be carried out");
        }
    }
    tokio::time::sleep_until((begun + length).into()).await;
    while let Some(done) = tasks.join_next().await {
        done.expect("a fault could be carried out");
    }
    progress.abort();
    eprintln!();
}

async fn strike(world: Arc<World>, fault: Fault) {
    match fault {
        Fault::Kill(server) => kill(world, server, Duration::ZERO).await,
        Fault::Landslide { away } => {
            let mut all = JoinSet::new();
            for server in 0..world.posts.len() {
                all.spawn(kill(Arc::clone(&world), server, away));
            }
            all.join_all().await;
        }
        Fault::Stop { server, time } => stop(&world, server, time).await,
        Fault::Leave(server) => leave(world, server).await,
        Fault::Crash { away } => {
            world.ledger.count("crash of PostgreSQL");
            world.crash(away).await;
        }
        Fault::Cut(server) => {
            world.ledger.count("cut");
            world.posts[server].line.cut();
        }
        Fault::Silence(server) => {
            world.ledger.count("silence");
            world.posts[server].line.silence();
        }
        Fault::HalfOpen { server, lost } => {
            world.ledger.count("half open");
            world.posts[server].line.half_open(lost);
        }
        Fault::Delay { server, by, time } => {
            world.ledger.count("delay");
            world.posts[server].line.delay(by);
            tokio::time::sleep(time).await;
            world.posts[server].line.open();
        }
        Fault::Throttle { server, bytes, time } => {
            world.ledger.count("throttle");
            world.posts[server].line.throttle(bytes);
            tokio::time::sleep(time).await;
            world.posts[server].line.open();
        }
        Fault::Limit { room, limit } => set_limit(&world, room, limit).await,
        Fault::Pause { room, time } => {
            world.ledger.count("pause");
            let path = format!("/v1/workspaces/{}", world.rooms[room].id);
            operate(&world, &format!("{path}/pause")).await;
            tokio::time::sleep(time).await;
            operate(&world, &format!("{path}/resume")).await;
        }
        Fault::PauseSeries { series, time } => pause_series(&world, series, time).await,
        Fault::Cancel { items } => cancel(&world, items).await,
        Fault::Retry { items } => retry(&world, items).await,
    }
}

async fn kill(world: Arc<World>, server: usize, away: Duration) {
    let post = &world.posts[server];
    let mut process = post.process.lock().await;
    world.ledger.count("kill -9");
    post.vacate();
    process.assert_alive();
    process.kill();
    tokio::time::sleep(away).await;
    post.refill(&mut process).await;
}

async fn stop(world: &World, server: usize, time: Duration) {
    let process = world.posts[server].process.lock().await;
    world.ledger.count("SIGSTOP past the lease");
    process.stop();
    tokio::time::sleep(time).await;
    world.ledger.open().resumed.push(now());
    process.signal(Signal::SIGCONT);
}

async fn leave(world: Arc<World>, server: usize) {
    let post = &world.posts[server];
    let mut process = post.process.lock().await;
    world.ledger.count("SIGTERM");
    post.vacate();
    process.assert_alive();
    process.signal(Signal::SIGTERM);
    let begun = Instant::now();
    while process.status().is_none() && begun.elapsed() < INSISTENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    match process.status() {
        Some(status) if status.code() == Some(0) => {}
        Some(status) => world
            .ledger
            .wrong(format!("a server told to leave ended with {status}")),
        None => world
            .ledger
            .wrong(format!("a server told to leave is there after {INSISTENCE:?}")),
    }
    post.refill(&mut process).await;
}

/// What was in force before counts until the change is acknowledged.
async fn set_limit(world: &World, room: usize, limit: i32) {
    world.ledger.count("change of a limit");
    let path = format!("/v1/workspaces/{}", world.rooms[room].id);
    world
        .ledger
        .open()
        .limits
        .entry(room)
        .or_default()
        .push((now(), limit));
    must(
        world,
        Method::PUT,
        &path,
        Some(&json!({ "max_concurrent": limit })),
    )
    .await;
}

async fn pause_series(world: &World, series: usize, time: Duration) {
    world.ledger.count("pause of a series");
    let id = world.ledger.open().series[series].id;
    let from = now();
    // Unknown until the resume is acknowledged.
    let place = {
        let pauses = &mut world.ledger.open().series[series].pauses;
        pauses.push((from, i64::MAX));
        pauses.len() - 1
    };
    operate(world, &format!("/v1/alarms/{id}/pause")).await;
    tokio::time::sleep(time).await;
    operate(world, &format!("/v1/alarms/{id}/resume")).await;
    world.ledger.open().series[series].pauses[place].1 = now();
}

async fn cancel(world: &World, items: usize) {
    let query = "select q.id from stationmaster.workflow_execution_queue q
                 left join stationmaster.workflow_executions e on e.id = q.execution_id
                 where q.status = 'PENDING' or e.status in ('STARTING', 'RUNNING') order by random() limit $1";
    for item in ids(world, query, items).await {
        world.ledger.open().cancelled.insert(item);
        let path = format!("/v1/queue/{item}/cancel");
        if world
            .insist(INSISTENCE, Method::POST, &path, Some(&json!({})))
            .await
            .is_some_and(|(status, _)| status < 300)
        {
            world.ledger.count("cancel");
        }
    }
}

async fn retry(world: &World, items: usize) {
    let query =
        "select queue_item_id from stationmaster.workflow_executions where status in ('FAILED', 'CANCELLED')
                 order by random() limit $1";
    for item in ids(world, query, items).await {
        // Asked once: whether or not it is answered, it may have been done.
        *world.ledger.open().retried.entry(item).or_default() += 1;
        let path = format!("/v1/queue/{item}/retry");
        if world
            .ask(Method::POST, &path, None)
            .await
            .is_some_and(|(status, _)| status < 300)
        {
            world.ledger.count("retry");
        }
    }
}

async fn ids(world: &World, query: &'static str, many: usize) -> Vec<uuid::Uuid> {
    let query = sqlx::query_scalar(query).bind(i64::try_from(many).unwrap_or(1));
    // Without the database there is nothing to choose from.
    query.fetch_all(&world.pool).await.unwrap_or_default()
}

async fn operate(world: &World, path: &str) {
    must(world, Method::POST, path, None).await;
}

async fn must(world: &World, method: Method, path: &str, body: Option<&Value>) {
    match world.insist(INSISTENCE, method, path, body).await {
        Some((200..300, _)) => {}
        Some((status, answer)) => world
            .ledger
            .wrong(format!("{path} was answered {status}: {answer}")),
        None => world
            .ledger
            .wrong(format!("{path} was answered by nobody within {INSISTENCE:?}")),
    }
}

/// What is still to be done, by the public relations, in one snapshot.
const OPEN: &str = "
    select (select count(*) from stationmaster.workflow_execution_queue where status in ('PENDING', 'CLAIMED')) as items,
           (select count(*) from stationmaster.workflow_executions where status in ('PENDING', 'STARTING', 'RUNNING')) as executions,
           (select count(*) from stationmaster.signals where status = 'PENDING') as signals,
           (select count(*) from stationmaster.alarms where kind = 'once' and status = 'active') as alarms,
           (select count(*) from stationmaster.alarm_occurrences where status in ('pending', 'claimed', 'retrying')) as occurrences";

/// Ends the series and waits until nothing is left to be done; what is left when patience ends.
pub(crate) async fn calm(world: &Arc<World>) -> Option<String> {
    let series: Vec<uuid::Uuid> = world
        .ledger
        .open()
        .series
        .iter()
        .map(|series| series.id)
        .collect();
    for (number, id) in series.into_iter().enumerate() {
        world.ledger.open().series[number].until = Some(now());
        let path = format!("/v1/alarms/{id}");
        must(world, Method::PATCH, &path, Some(&json!({ "end_at": end() }))).await;
    }
    let begun = Instant::now();
    let mut quiet = 0;
    let mut left = String::new();
    while begun.elapsed() < PATIENCE {
        left = match sqlx::query(OPEN).fetch_one(&world.pool).await {
            Ok(row) => {
                let open: Vec<String> = ["items", "executions", "signals", "alarms", "occurrences"]
                    .into_iter()
                    .filter(|name| row.get::<i64, _>(name) > 0)
                    .map(|name| format!("{} {name}", row.get::<i64, _>(name)))
                    .collect();
                open.join(", ")
            }
            Err(error) => error.to_string(),
        };
        quiet = if left.is_empty() { quiet + 1 } else { 0 };
        if quiet == 3 {
            eprintln!("everything was at rest {:?} after the storm", begun.elapsed());
            return None;
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    Some(left)
}

/// So far ahead that every series fires once more.
fn end() -> String {
    let at = jiff::Timestamp::from_millisecond(now() + 6_000).expect("a time of this age");
    at.to_string()
}

async fn progress(world: Arc<World>, length: Duration) {
    let begun = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let pause = Duration::from_secs(if terminal { 1 } else { 10 });
    loop {
        tokio::time::sleep(pause).await;
        let line = {
            let books = world.ledger.open();
            let acknowledged = books.items.values().filter(|asked| asked.item.is_some()).count();
            format!(
                "{:>4.0} of {:.0} s: {} faults, {acknowledged} items, {} signals, {} alarms, {} wakes, {} locks",
                begun.elapsed().as_secs_f64(),
                length.as_secs_f64(),
                books.faults.values().sum::<usize>(),
                books.signals.len(),
                books.once.len(),
                world.receiver.wakes().len(),
                books.holdings.len()
            )
        };
        if terminal {
            eprint!("\r{line}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{line}");
        }
    }
}
