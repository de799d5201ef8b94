//! What lies outside of the database: the engine, Redis, whoever receives wakes, and the zones that came with this program.

use std::time::Duration;

use stationmaster_core::db::Database;
use stationmaster_core::executions::inspect::{self, Filter};
use stationmaster_temporal::TemporalEngine;
use tokio::net::TcpStream;
use url::Url;

use super::{DEADLINE, Finding, all, within};
use crate::config::{Config, Engine, Heartbeats};
use crate::wiring;

/// An execution must be remembered for longer than doubts about it last.
const SHORT_RETENTION: Duration = Duration::from_hours(24);
/// Clocks further apart are worth a word.
const APART: f64 = 2.0;

pub(super) async fn look(config: &Config) -> Vec<Finding> {
    all(vec![
        within("engine.reachable", engine(config)),
        within("redis.reachable", redis(config)),
        within("wakes.egress", egress(config)),
        within("zones.version", async { vec![zones()] }),
    ])
    .await
}

fn zones() -> Finding {
    let version = stationmaster_schedule::zone_data_version();
    Finding::ok(
        "zones.version",
        format!("zone data {version} came with this program"),
    )
}

async fn engine(config: &Config) -> Vec<Finding> {
    const ID: &str = "engine.reachable";
    if config.engine == Engine::Embedded {
        return vec![Finding::ok(ID, "embedded: it runs inside the servers")];
    }
    let engine =
        match wiring::temporal(&config.temporal, "doctor").map(|settings| TemporalEngine::new(&settings)) {
            Ok(Ok(engine)) => engine,
            Ok(Err(error)) => {
                return vec![Finding::problem(
                    ID,
                    error.to_string(),
                    "Mend the settings temporal.*",
                )];
            }
            Err(error) => {
                return vec![Finding::problem(
                    ID,
                    format!("{error:#}"),
                    "Mend the settings temporal.*",
                )];
            }
        };
    let cluster = match engine.look(DEADLINE).await {
        Ok(cluster) => cluster,
        Err(error) => {
            let advice = "Is Temporal running, and do temporal.address and temporal.namespace name it?";
            return vec![Finding::problem(ID, error, advice)];
        }
    };
    let seen = format!("Temporal {} at {}", cluster.version, config.temporal.address);
    vec![
        Finding::ok(ID, seen),
        retention(cluster.retention, &config.temporal.namespace),
        clock(config, &engine).await,
    ]
}

fn retention(retention: Option<Duration>, namespace: &str) -> Finding {
    const ID: &str = "engine.retention";
    let advice = "Raise the namespace's retention: what it forgets cannot be reconciled, and its id could be started again";
    match retention {
        None => Finding::note(
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
                Finding::warning(ID, seen, advice)
            } else {
                Finding::ok(ID, seen)
            }
        }
    }
}

/// The engine is never asked for its time; but what it says of our newest run must lie between our question and its answer.
async fn clock(config: &Config, engine: &TemporalEngine) -> Finding {
    const ID: &str = "engine.clock";
    let unknown = || Finding::ok(ID, "no run of ours to compare with");
    let Some(url) = &config.database_url else {
        return unknown();
    };
    let Ok(database) = Database::new(url, 1) else {
        return unknown();
    };
    let filter = Filter {
        limit: 20,
        ..Filter::default()
    };
    let newest = inspect::executions(&database, &filter).await.unwrap_or_default();
    let newest = newest.into_iter().find_map(|execution| {
        let temporal = execution.engine.as_deref() == Some("temporal") && execution.attempts == 0;
        temporal.then_some((execution.id, execution.claimed_at?, execution.started_at?))
    });
    let Some((id, claimed_at, started_at)) = newest else {
        return unknown();
    };
    let Ok(Some(began)) = engine.began_at(id, DEADLINE).await else {
        return unknown();
    };
    let early = claimed_at.duration_since(began).as_secs_f64();
    let late = began.duration_since(started_at).as_secs_f64();
    let apart = early.max(late).max(0.0);
    let seen = format!("the engine and the database are at most {apart:.3} s apart, by the newest run");
    if apart > APART {
        return Finding::warning(ID, seen, "Let both keep time by NTP");
    }
    Finding::ok(ID, seen)
}

async fn redis(config: &Config) -> Vec<Finding> {
    const ID: &str = "redis.reachable";
    let Some(url) = &config.redis_url else {
        return vec![Finding::ok(ID, "not used")];
    };
    let ping = async {
        let client = redis::Client::open(url.as_str())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd("PING").query_async::<String>(&mut connection).await
    };
    match ping.await {
        Ok(_) => vec![Finding::ok(ID, "it answers")],
        Err(error) => {
            let advice = "Is Redis running, and does redis_url name it?";
            // The words of the library may hold the address, and that a password.
            let seen = error.category().to_owned();
            vec![if config.heartbeats == Heartbeats::Redis {
                Finding::problem(ID, seen, advice)
            } else {
                Finding::warning(ID, seen, advice)
            }]
        }
    }
}

/// A connection and no word: a wake would be work.
async fn egress(config: &Config) -> Vec<Finding> {
    const ID: &str = "wakes.egress";
    let Some(router) = &config.alarms.router_url else {
        return vec![Finding::ok(
            ID,
            "no router is configured: alarms name their own targets",
        )];
    };
    let address = router.parse::<Url>().ok().and_then(|url| {
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some((host, url.port_or_known_default()?))
    });
    let Some((host, port)) = address else {
        return vec![Finding::problem(
            ID,
            "alarms.router_url is no address",
            "Mend the setting",
        )];
    };
    match TcpStream::connect((host.as_str(), port)).await {
        Ok(_) => vec![Finding::ok(ID, format!("{host}:{port} can be reached"))],
        Err(error) => {
            let advice =
                "Is the router running, and is the way to it open? Wakes are tried again, up to max_failures";
            vec![Finding::warning(
                ID,
                format!("{host}:{port} cannot be reached: {error}"),
                advice,
            )]
        }
    }
}
