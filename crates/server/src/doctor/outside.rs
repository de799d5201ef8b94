//! What lies outside of the database: the engine, Redis, whoever receives wakes, and the zones that came with this program.

use std::future::ready;
use std::time::Duration;

use stationmaster_core::engine::Engine as _;
use stationmaster_core::engine::record::{self, Recorded};
use stationmaster_core::executions::browse::{self, Filter};
use stationmaster_core::executions::workers::task_queues;
use stationmaster_core::id::ExecutionId;
use stationmaster_temporal::TemporalEngine;
use tokio::net::TcpStream;

use super::{Deadline, Finding, REACH, all, note, ok, problem, timeout, warning, within};
use crate::config::{Config, Engine, Heartbeats};
use crate::wiring;

/// An execution must be remembered for longer than doubts about it last.
const SHORT_RETENTION: Duration = Duration::from_hours(24);
/// Clocks further apart are worth a word.
const APART: f64 = 2.0;
const CLOCK: &str = "engine.clock";
const RECORD: &str = "engine.record";
const WORKERS: &str = "engine.workers";

pub(super) async fn look(config: &Config, deadline: Deadline) -> Vec<Finding> {
    all(vec![
        within(deadline, "engine.reachable", engine(config, deadline)),
        within(deadline, "redis.reachable", redis(config)),
        within(deadline, "wakes.egress", egress(config)),
        within(deadline, "wakes.signature", ready(signature(config))),
        within(deadline, "zones.version", ready(zones())),
    ])
    .await
}

fn zones() -> Finding {
    let version = stationmaster_schedule::zone_data_version();
    ok(
        "zones.version",
        format!("zone data {version} came with this program"),
    )
}

async fn engine(config: &Config, deadline: Deadline) -> Vec<Finding> {
    const ID: &str = "engine.reachable";
    if config.engine == Engine::Embedded {
        return vec![ok(ID, "embedded: it runs inside the servers")];
    }
    let settings = wiring::temporal(&config.temporal, "doctor");
    let engine = match TemporalEngine::new(&settings) {
        Ok(engine) => engine,
        Err(error) => {
            let advice = "Mend the settings temporal.*";
            return vec![problem(ID, error.to_string(), advice)];
        }
    };
    let cluster = match engine.look(REACH).await {
        Ok(cluster) => cluster,
        Err(error) => {
            let advice = "Is Temporal running, and do temporal.address and temporal.namespace name it?";
            return vec![problem(ID, error, advice)];
        }
    };
    let seen = format!("Temporal {} at {}", cluster.version, config.temporal.address);
    vec![
        ok(ID, seen),
        retention(cluster.retention, &config.temporal.namespace),
        within_most(deadline, RECORD, on_record(config, &engine)).await,
        within_most(deadline, CLOCK, compare(config, &engine)).await,
        within_most(deadline, WORKERS, workers(config, &engine)).await,
    ]
}

/// Servers work with the engine on record and with no other.
async fn on_record(config: &Config, engine: &TemporalEngine) -> Finding {
    const ID: &str = RECORD;
    let identity = match engine.identity().await {
        Ok(identity) => identity,
        Err(error) => {
            let advice = "Servers will not work with an engine that does not tell who it is";
            return problem(ID, error.reason(), advice);
        }
    };
    let database = config
        .database_url
        .as_ref()
        .and_then(|url| config.database(url, 1).ok());
    let recorded = match database {
        Some(database) => record::list(&database).await.ok(),
        None => None,
    };
    let Some(recorded) = recorded else {
        return ok(ID, "without a database there is none to compare with");
    };
    let is_current = |one: &&Recorded| one.name == engine.name() && one.retired_at.is_none();
    match recorded.iter().find(is_current) {
        None => ok(ID, "none yet: the first server puts this one on record"),
        Some(one) if one.identity == identity.key => {
            ok(ID, format!("it is the one on record: {}", one.place))
        }
        Some(one) => problem(
            ID,
            format!("on record is {}, and this is {}", one.place, identity.place),
            "Name the engine on record in temporal.address and temporal.namespace. If the other one is meant, stop all servers and run: stationmaster engine change",
        ),
    }
}

/// What runs on a task queue that nobody polls holds its slots and does not go on.
async fn workers(config: &Config, engine: &TemporalEngine) -> Finding {
    const ID: &str = WORKERS;
    let database = config
        .database_url
        .as_ref()
        .and_then(|url| config.database(url, 1).ok());
    let Some(database) = database else {
        return ok(ID, "without a database it is not known what runs");
    };
    let usual = &config.executions.task_queue;
    let queues = match task_queues(&database, None, usual, Duration::ZERO).await {
        Ok(queues) => queues,
        Err(error) => return warning(ID, error.to_string(), "The database's own log may tell more"),
    };
    let mut deserted = Vec::new();
    for queue in &queues {
        match engine.is_polled(&queue.name).await {
            Ok(true) => {}
            Ok(false) => deserted.push(format!("{} ({} run)", queue.name, queue.executions)),
            Err(error) => return warning(ID, error.reason(), "Ask again"),
        }
    }
    if deserted.is_empty() {
        let seen = format!(
            "task queues on which executions run: {}, all polled",
            queues.len()
        );
        return ok(ID, seen);
    }
    warning(
        ID,
        format!("no worker polls task queue {}", deserted.join(", ")),
        "Start a worker that polls it. What runs there holds its slots until then, or until: stationmaster executions terminate ID",
    )
}

fn retention(retention: Option<Duration>, namespace: &str) -> Finding {
    const ID: &str = "engine.retention";
    let advice = "Raise the namespace's retention: what it forgets cannot be reconciled, and its id could be started again";
    match retention {
        None => note(
            ID,
            format!("{namespace} does not tell how long it remembers"),
            advice,
        ),
        Some(time) => {
            let seen = format!(
                "{namespace} remembers closed runs for {} h",
                time.as_secs() / 3600
            );
            if time < SHORT_RETENTION {
                warning(ID, seen, advice)
            } else {
                ok(ID, seen)
            }
        }
    }
}

/// One more question to the engine: what was seen of it before is told in any case.
async fn within_most(
    deadline: Deadline,
    id: &'static str,
    question: impl Future<Output = Finding>,
) -> Finding {
    let answer = timeout(deadline.left().mul_f64(0.9), question).await;
    answer.unwrap_or_else(|_| super::silence(id))
}

/// The engine is never asked for its time; but what it says of our newest run must lie between our question and its answer.
async fn compare(config: &Config, engine: &TemporalEngine) -> Finding {
    const ID: &str = CLOCK;
    let Some(apart) = apart(config, engine).await else {
        return ok(ID, "no run of ours to compare with");
    };
    let seen = format!("the engine and the database are at most {apart:.3} s apart, by the newest run");
    if apart > APART {
        return warning(ID, seen, "Let both keep time by NTP");
    }
    ok(ID, seen)
}

/// How many seconds, by the newest run.
async fn apart(config: &Config, engine: &TemporalEngine) -> Option<f64> {
    let database = config.database(config.database_url.as_ref()?, 1).ok()?;
    let filter = Filter {
        limit: 20,
        ..Filter::default()
    };
    let newest = browse::executions(&database, &filter).await.ok()?.rows;
    let (id, claimed_at, started_at) = newest.into_iter().find_map(|execution| {
        let temporal = execution.engine.as_deref() == Some("temporal") && execution.attempts == 0;
        temporal.then_some((execution.id, execution.claimed_at?, execution.started_at?))
    })?;
    let began = engine.began_at(ExecutionId(id), REACH).await.ok()??;
    let early = claimed_at.duration_since(began).as_secs_f64();
    let late = began.duration_since(started_at).as_secs_f64();
    Some(early.max(late).max(0.0))
}

async fn redis(config: &Config) -> Finding {
    const ID: &str = "redis.reachable";
    let Some(url) = &config.redis_url else {
        return ok(ID, "not used");
    };
    let ask = async {
        let client = redis::Client::open(url.as_str())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut info = redis::cmd("INFO");
        info.arg("server").query_async::<String>(&mut connection).await
    };
    let seen = match timeout(REACH, ask).await {
        Ok(Ok(info)) => {
            let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
            let used = match config.heartbeats {
                Heartbeats::Redis => "heartbeats are kept there",
                Heartbeats::Postgres => "nothing is kept there: heartbeats = postgres",
            };
            let version = version.unwrap_or("(no version)").trim();
            return ok(ID, format!("Redis {version} answers; {used}"));
        }
        // The words of the library may hold the address, and that a password.
        Ok(Err(error)) => error.category().to_owned(),
        Err(_) => "no answer".to_owned(),
    };
    let advice = "Is Redis running, and does redis_url name it?";
    if config.heartbeats == Heartbeats::Redis {
        let advice =
            format!("{advice} Leases go on without it; the supervisor removes nothing until it is back");
        problem(ID, seen, advice)
    } else {
        warning(ID, seen, advice)
    }
}

/// Whoever receives wakes can believe only what is signed.
fn signature(config: &Config) -> Finding {
    const ID: &str = "wakes.signature";
    if !config.alarms_enabled {
        return ok(ID, "this server would send no wakes: alarms.enabled = false");
    }
    if config.alarms.signing_secret.is_none() {
        let advice =
            "Make one: stationmaster alarms secrets generate; set alarms.signing_secret on every server";
        return note(ID, "wakes are sent without a signature", advice);
    }
    ok(ID, "wakes are signed")
}

/// A connection and no word: a wake would be work.
async fn egress(config: &Config) -> Finding {
    const ID: &str = "wakes.egress";
    let Some(router) = &config.alarms.router_url else {
        return ok(ID, "no router is configured: alarms name their own targets");
    };
    let (Some(host), Some(port)) = (router.host_str(), router.port_or_known_default()) else {
        return problem(ID, "alarms.router_url is no address", "Mend the setting");
    };
    let host = host.trim_matches(['[', ']']);
    match TcpStream::connect((host, port)).await {
        Ok(_) => ok(ID, format!("{host}:{port} can be reached")),
        Err(error) => {
            let advice =
                "Is the router running, and is the way to it open? Wakes are tried again, up to max_failures";
            let seen = format!("{host}:{port} cannot be reached: {error}");
            warning(ID, seen, advice)
        }
    }
}
