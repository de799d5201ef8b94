//! What pages cost where there is very much: by the rows and blocks that they read, which is held, and by the clock, which is told.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use stationmaster_core::access::Role;
use stationmaster_core::db::Database;
use stationmaster_postgres::{Binaries, Server, Settings};

use crate::crowd::{self, Crowd};
use crate::scene::Scene;
use crate::support::{Launch, TestDatabase, setting};
use crate::visit::Visit;

/// How often each page is asked for.
const TIMES: usize = 20;

/// A PostgreSQL that counts what statements read.
async fn counting() -> (Server, TestDatabase) {
    let mut settings = Settings::throw_away(Path::new(env!("CARGO_TARGET_TMPDIR")));
    settings.extra = vec![(
        "shared_preload_libraries".to_owned(),
        "pg_stat_statements".to_owned(),
    )];
    let bin = PathBuf::from(setting("STATIONMASTER_TEST_POSTGRES_BIN"));
    let start = move || {
        let binaries = Binaries::find(Some(&bin)).expect("PostgreSQL is installed");
        Server::start(&binaries, &settings).expect("it starts")
    };
    let server = tokio::task::spawn_blocking(start).await.unwrap();
    let database = TestDatabase::at(&server.url("postgres")).await;
    sqlx::raw_sql("create extension pg_stat_statements")
        .execute(&database.pool)
        .await
        .unwrap();
    (server, database)
}

async fn crowded(database: TestDatabase, crowd: Crowd) -> Visit {
    let server = Launch::on(&database)
        .with("HTTP__RATE_LIMIT", "1000000")
        .start_ready()
        .await;
    let scene = Scene {
        address: server.address().unwrap(),
        core: Database::new(&database.url, 4).unwrap(),
        server,
        database,
    };
    let visit = Visit::on(scene).await;
    crowd.enter(&visit.scene, &visit.client).await;
    visit
}

/// What the requests of the dashboard have read since the last time: statements, rows, blocks of eight kilobytes. What servers do for
/// themselves they do under another role.
async fn read(database: &TestDatabase) -> (i64, i64, i64) {
    let query = "select coalesce(sum(calls), 0)::bigint, coalesce(sum(rows), 0)::bigint,
                        coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint
                 from pg_stat_statements s join pg_roles r on r.oid = s.userid
                 where r.rolname = 'stationmaster_api'";
    let told = sqlx::query_as(query).fetch_one(&database.pool).await.unwrap();
    sqlx::query("select pg_stat_statements_reset()")
        .execute(&database.pool)
        .await
        .unwrap();
    told
}

/// The statements that took the database longest since the last time: how often, how long each, and how they begin.
async fn slowest(database: &TestDatabase) -> Vec<(i64, f64, String)> {
    let query = "select calls, mean_exec_time, left(query, 90)
                 from pg_stat_statements s join pg_roles r on r.oid = s.userid
                 where r.rolname = 'stationmaster_api'
                 order by total_exec_time desc limit 3";
    sqlx::query_as(query).fetch_all(&database.pool).await.unwrap()
}

async fn ask(visit: &Visit, token: &str, path: &str) -> usize {
    let request = visit
        .scene
        .ask(Method::GET, path, None)
        .header("cookie", format!("stationmaster_token={token}"));
    let answer = request.send().await.unwrap();
    // Whoever jumps to one thing is sent to its page.
    let is_sent = path.starts_with("/jump") && answer.status() == StatusCode::SEE_OTHER;
    assert!(answer.status() == StatusCode::OK || is_sent, "{path}");
    answer.bytes().await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_reads_more_than_it_shows_however_much_there_is() {
    let (_server, database) = counting().await;
    let crowd = Crowd {
        workspaces: 400,
        workflows: 100,
        ended: 12_000,
        failed: 1_200,
        open: 8_000,
        limit: 5,
        alarms: 60,
        minutes: 120,
    };
    let visit = crowded(database, crowd).await;
    let token = visit.scene.token(Role::Admin, None).await;
    // The whole of the items alone is more than any page may read.
    let whole = "select (pg_table_size('stationmaster_internal.queue_items') / 8192)::bigint";
    println!("items: {} blocks", visit.scene.database.number(whole).await);
    let mut wrong = Vec::new();
    for path in crowd::pages(&visit.client).await {
        ask(&visit, &token, &path).await;
        read(&visit.scene.database).await;
        let bytes = ask(&visit, &token, &path).await;
        let (statements, rows, blocks) = read(&visit.scene.database).await;
        println!("{path:60} {statements:4} statements {rows:6} rows {blocks:7} blocks {bytes:7} bytes");
        // A search in texts, names that are compared with one that is misspelt, and a count of what an action would touch look at so many
        // rows and no more.
        let many = path.starts_with("/act/") || path.contains("search=") || path.contains("q=tema");
        let (most_rows, most_blocks) = if many { (11_000, 40_000) } else { (600, 4_000) };
        if statements > 100 || rows > most_rows || blocks > most_blocks || bytes > 130_000 {
            wrong.push(format!(
                "{path}: {statements} statements, {rows} rows, {blocks} blocks, {bytes} bytes"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn at_most(times: &mut [Duration], share: usize) -> u128 {
    times.sort();
    times[(times.len() * share).div_ceil(100) - 1].as_millis()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes some minutes, and tells times: cargo xtask pages"]
async fn every_page_is_timed_where_there_is_very_much() {
    let (_server, database) = counting().await;
    let visit = crowded(database, Crowd::WHOLE).await;
    let token = visit.scene.token(Role::Admin, None).await;
    let tab = visit.person(Role::Admin, None).await;
    println!(
        "{:70} {:>8} {:>8} {:>8} {:>9}",
        "page", "half", "p95", "browser", "bytes"
    );
    for path in crowd::pages(&visit.client).await {
        let (mut times, mut bytes) = (Vec::new(), 0);
        read(&visit.scene.database).await;
        for _ in 0..TIMES {
            let begun = Instant::now();
            bytes = ask(&visit, &token, &path).await;
            times.push(begun.elapsed());
        }
        let (half, most) = (at_most(&mut times, 50), at_most(&mut times, 95));
        // From the click until everything is there and times are told.
        let mut useful = Vec::new();
        if !path.starts_with("/complete") {
            for _ in 0..5 {
                tab.open(&path).await;
                let took = tab
                    .look("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
                    .await;
                useful.push(Duration::from_secs_f64(took.as_f64().unwrap() / 1000.0));
            }
        }
        let useful = if useful.is_empty() {
            0
        } else {
            at_most(&mut useful, 95)
        };
        let slow = if most >= 300 || useful >= 1000 { "  <<" } else { "" };
        let slowest = slowest(&visit.scene.database).await;
        println!("{path:70} {half:>5} ms {most:>5} ms {useful:>5} ms {bytes:>9}{slow}");
        for (calls, mean, text) in slowest.iter().filter(|(_, mean, _)| *mean > 15.0) {
            println!("    {calls} x {mean:.0} ms: {text}");
        }
        tab.open("/settings").await;
    }
}
