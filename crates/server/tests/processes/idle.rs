//! With nothing to do a server costs next to nothing: every loop says when it next has something to do.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::support::{ENDLESS, Launch, Process, Temporal, TestDatabase, eventually};

const WATCHED: Duration = Duration::from_secs(20);
/// How often it may be watched: on a busy machine what a start brings with it is over late.
const TIMES: usize = 4;
/// What a second may bring, of an idle server and of one that owns fifty dispatchers, each of which has its heartbeat, its lease and its
/// run.
const IDLE: Bounds = Bounds {
    statements: 5.0,
    rows: 2.0,
    calls: 5.0,
    cpu: 0.08,
};
const OWNER: Bounds = Bounds {
    statements: 10.0,
    rows: 40.0,
    calls: 20.0,
    cpu: 0.2,
};

struct Bounds {
    statements: f64,
    rows: f64,
    calls: f64,
    /// Of a core, on a slow machine. A program that is built for tests and tells of every statement and every call needs several times as
    /// much of it as one that is built for use.
    cpu: f64,
}

/// What a server has done so far, by its own log, by PostgreSQL and by the kernel.
#[derive(Default)]
struct Done {
    statements: BTreeMap<String, usize>,
    calls: BTreeMap<String, usize>,
    rows: i64,
    cpu: f64,
}

impl Done {
    async fn so_far(database: &TestDatabase, server: &Process) -> Self {
        let mut done = Self {
            rows: rows_written(database).await,
            cpu: cpu_seconds(server.pid()),
            ..Self::default()
        };
        for line in server.log().lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let text = |field: &str| line[field].as_str().unwrap_or_default().trim().to_owned();
            if line["target"] == "sqlx::query" {
                let statement = text("db.statement");
                let statement = if statement.is_empty() {
                    text("summary")
                } else {
                    statement
                };
                let words = statement.lines().next().unwrap_or_default().to_owned();
                *done.statements.entry(words).or_default() += 1;
            } else if line["message"] == "Asks Temporal" {
                *done.calls.entry(text("request")).or_default() += 1;
            }
        }
        done
    }
}

/// Rows written so far, to whatever table.
async fn rows_written(database: &TestDatabase) -> i64 {
    database
        .number("select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint from pg_stat_user_tables")
        .await
}

/// The processor time that a process has used so far.
fn cpu_seconds(pid: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // After the name, which is in parentheses: user and system time are the 12th and 13th, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum::<f64>()
        / 100.0
}

/// How often each was done more, the most frequent first.
fn more(before: &BTreeMap<String, usize>, after: &BTreeMap<String, usize>) -> (usize, Vec<String>) {
    let mut more: Vec<(usize, &String)> = after
        .iter()
        .map(|(name, count)| (count - before.get(name).copied().unwrap_or_default(), name))
        .filter(|(count, _)| *count > 0)
        .collect();
    more.sort_by(|one, other| other.cmp(one));
    let all = more.iter().map(|(count, _)| count).sum();
    (
        all,
        more.iter()
            .map(|(count, name)| format!("{count:>5} {name}"))
            .collect(),
    )
}

fn telling(launch: Launch) -> Launch {
    launch.with(
        "LOG__LEVEL",
        "info,sqlx::query=debug,stationmaster_temporal::link=trace",
    )
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
async fn assert_costs_next_to_nothing(database: &TestDatabase, server: &Process, bounds: &Bounds) {
    // What a start brings with it is over, and every task has found often enough that there is nothing to do.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut seen = Vec::new();
    for _ in 0..TIMES {
        let before = Done::so_far(database, server).await;
        assert!(!before.statements.is_empty(), "statements are heard of");
        tokio::time::sleep(WATCHED).await;
        let after = Done::so_far(database, server).await;
        let in_a_second = |count: f64| count / WATCHED.as_secs_f64();
        let (statements, by_statement) = more(&before.statements, &after.statements);
        let (calls, by_call) = more(&before.calls, &after.calls);
        let statements = in_a_second(statements as f64);
        let calls = in_a_second(calls as f64);
        let rows = in_a_second((after.rows - before.rows) as f64);
        let cpu = in_a_second(after.cpu - before.cpu);
        let words = format!(
            "in a second: {statements:.2} statements, {rows:.2} rows written, {calls:.2} calls of the engine, {cpu:.4} of a core\n{}\n{}",
            by_statement.join("\n"),
            by_call.join("\n")
        );
        println!("{words}");
        if statements < bounds.statements && rows < bounds.rows && calls < bounds.calls && cpu < bounds.cpu {
            return;
        }
        seen.push(words);
    }
    panic!("again and again:\n{}", seen.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_costs_next_to_nothing() {
    let database = TestDatabase::new().await;
    let server = telling(Launch::on(&database)).start_ready().await;
    assert_costs_next_to_nothing(&database, &server, &IDLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_on_temporal_costs_next_to_nothing() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let launch = telling(Launch::on(&database).temporal(&temporal.address, &temporal.namespace));
    let server = launch.start_ready().await;
    assert_costs_next_to_nothing(&database, &server, &IDLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_owner_of_fifty_dispatchers_costs_next_to_nothing() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (_, definition) = database.workflow(1, ENDLESS).await;
    let make = "with made as (
                    insert into stationmaster.triggers (project, name, workflow_definition_id)
                    select 'project-' || n, 'paid', $1 from generate_series(1, 50) n returning project
                )
                insert into stationmaster.dispatchers (id, project, task_queue)
                select stationmaster.dispatcher_id(project, 'default'), project, 'default' from made";
    sqlx::query(make)
        .bind(definition)
        .execute(&database.pool)
        .await
        .unwrap();
    let launch = telling(Launch::on(&database).temporal(&temporal.address, &temporal.namespace));
    let server = launch.start_ready().await;
    eventually("it owns them all", async || {
        let owned =
            "select count(*) from stationmaster.dispatchers where owner is not null and run_id is not null";
        database.number(owned).await == 50
    })
    .await;
    assert_costs_next_to_nothing(&database, &server, &OWNER).await;
}
