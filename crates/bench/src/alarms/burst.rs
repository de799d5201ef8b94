//! Alarms due within a short time over several targets: how many a second, how late, how many twice, and what share of what
//! the bare client reaches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use stationmaster_core::alarms::Settings;
use stationmaster_core::db::Database;
use stationmaster_core::observe::Metrics;
use stationmaster_core::wake::guard::Guard;
use stationmaster_core::wake::signature::Secret;
use stationmaster_core::wake::{Client, NamedBy, Outcome, Wake};

use super::Receiver;
use crate::measure::{Percentiles, percentiles};
use crate::run::{Lanes, Question, Where, start_servers, stop_servers, wait_for};
use crate::scenario::Progress;

const FIRED: Question = Question {
    how_many: "select count(*) from stationmaster_internal.occurrences_finished where status = 'fired'",
    // The figures come from the receivers, so it does not matter when this is noticed.
    is_anything_left: "select true",
};

/// What is loaded.
#[derive(Debug, Clone, Copy)]
pub struct Burst {
    /// Alarms.
    pub alarms: usize,
    /// Within this time they become due.
    pub within: Duration,
    /// Receivers.
    pub targets: usize,
    /// Servers.
    pub servers: usize,
    /// How long a target takes for an answer.
    pub answer_after: Duration,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Ran {
    /// Alarms that were due.
    pub alarms: usize,
    /// Wakes a second, from the first due instant to the last arrival.
    pub per_second: f64,
    /// From the due instant to the arrival at the target, in milliseconds.
    pub lateness: Percentiles,
    /// Wakes that came more than once.
    pub duplicates: usize,
    /// Wakes that never came.
    pub missing: usize,
    /// Wakes a second by the same client, bare, to the same receivers; the mean of before and after.
    pub bare_per_second: f64,
    /// Of the bare figure.
    pub share_of_bare: f64,
}

/// Runs one.
pub async fn run(url: &str, burst: Burst, settings: &Settings, progress: &mut dyn Progress) -> Result<Ran> {
    let mut receivers = Vec::new();
    for _ in 0..burst.targets {
        receivers.push(Receiver::start(burst.answer_after).await?);
    }
    let mut settings = settings.clone();
    settings.allow_targets = vec!["127.0.0.0/8".parse().map_err(anyhow::Error::msg)?];
    settings.signing_secret = Some(Secret::random());
    progress.part("bare client", burst.alarms);
    let before = bare(burst.alarms, &receivers, &settings).await?;
    let database = Database::new(url, 4)?;
    wipe(&database).await?;
    progress.part("loading", 1);
    let lanes = Lanes {
        executions: None,
        alarms: Some(settings.clone()),
    };
    let metrics = Arc::new(Metrics::new());
    let stations = start_servers(url, burst.servers, &lanes, &Where::Embedded, &metrics).await?;
    let first = load(&database, burst, &receivers).await?;
    for receiver in &receivers {
        drop(receiver.take());
    }
    progress.part("firing", burst.alarms);
    wait_for(&database, FIRED, burst.alarms, |done| progress.at(done)).await?;
    let mut ran = measure(&receivers, burst, first)?;
    stop_servers(&stations).await;
    progress.part("bare client again", burst.alarms);
    let after = bare(burst.alarms, &receivers, &settings).await?;
    ran.bare_per_second = f64::midpoint(before, after);
    ran.share_of_bare = ran.per_second / ran.bare_per_second;
    Ok(ran)
}

/// Empties the tables of alarms.
pub async fn wipe(database: &Database) -> Result<()> {
    sqlx::query(
        "truncate stationmaster_internal.alarm_definitions, stationmaster_internal.alarm_standings, stationmaster_internal.alarm_unplanned,
                  stationmaster_internal.occurrences_open, stationmaster_internal.occurrences_finished, stationmaster_internal.occurrence_tries,
                  stationmaster_internal.occurrence_ranges, stationmaster_internal.alarm_events",
    )
    .execute(&database.pool())
    .await?;
    Ok(())
}

/// Loads the alarms some seconds ahead. Answers when the first is due.
async fn load(database: &Database, burst: Burst, receivers: &[Receiver]) -> Result<Timestamp> {
    let targets: Vec<String> = receivers
        .iter()
        .map(|receiver| format!("http://{}/wake", receiver.address))
        .collect();
    let workspace = "insert into stationmaster.workspaces default values returning id";
    let workspace: uuid::Uuid = sqlx::query_scalar(workspace).fetch_one(&database.pool()).await?;
    let ahead = Duration::from_secs(5) + Duration::from_micros(200) * u32::try_from(burst.alarms)?;
    let began = Instant::now();
    let first: jiff_sqlx::Timestamp = sqlx::query_scalar(
        "with loaded as (
             insert into stationmaster_internal.alarm_definitions (workspace_id, kind, fire_at, target_url, message, payload)
             select $1, 'once', now() + make_interval(secs => $2 + n * $3), ($4::text[])[1 + n % cardinality($4::text[])],
                    'bench', '{\"order\": 17, \"lines\": [1, 2, 3]}'
             from generate_series(0, $5 - 1) n
             returning fire_at
         )
         select min(fire_at) from loaded",
    )
    .bind(workspace)
    .bind(ahead.as_secs_f64())
    .bind(burst.within.as_secs_f64() / f64::from(u32::try_from(burst.alarms)?))
    .bind(targets)
    .bind(i32::try_from(burst.alarms)?)
    .fetch_one(&database.pool())
    .await?;
    sqlx::query("vacuum analyze").execute(&database.pool()).await?;
    ensure!(
        began.elapsed() < ahead,
        "loading took {:?}, longer than the {ahead:?} planned for it",
        began.elapsed()
    );
    Ok(first.to_jiff())
}

fn measure(receivers: &[Receiver], burst: Burst, first_due: Timestamp) -> Result<Ran> {
    let (mut late, mut requests, mut last) = (Vec::with_capacity(burst.alarms), 0, first_due);
    for receiver in receivers {
        let arrivals = receiver.take();
        requests += arrivals.requests;
        for (id, at) in arrivals.first {
            let (_, due) = id
                .split_once(':')
                .context("a wake without an instant in its id")?;
            let due: Timestamp = due.to_ascii_uppercase().parse()?;
            late.push(millis(at.duration_since(due)));
            last = last.max(at);
        }
    }
    let distinct = late.len();
    let seconds = millis(last.duration_since(first_due)) / 1000.0;
    Ok(Ran {
        alarms: burst.alarms,
        per_second: f64::from(u32::try_from(distinct)?) / seconds,
        lateness: percentiles(&mut late),
        duplicates: requests - distinct,
        missing: burst.alarms - distinct,
        bare_per_second: 0.0,
        share_of_bare: 0.0,
    })
}

fn millis(duration: SignedDuration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The same client, the same number of wakes of the same size, the same signature, as many at once.
async fn bare(wakes: usize, receivers: &[Receiver], settings: &Settings) -> Result<f64> {
    let client = Client::new(Guard::new(settings.allow_targets.clone()), settings.per_target)?;
    let urls: Vec<url::Url> = receivers
        .iter()
        .map(|receiver| format!("http://{}/wake", receiver.address).parse())
        .collect::<Result<_, _>>()?;
    let secrets: Vec<Secret> = settings.signing_secret.iter().cloned().collect();
    let body = br#"{"workspace_id":"0199a0de-0000-7000-8000-000000000000","user_id":"0199a0de-0000-7000-8000-000000000000","conversation_id":null,"message":"bench","payload":{"order": 17, "lines": [1, 2, 3]},"alarm_id":"0199a0de-0000-7000-8000-000000000000","scheduled_for":"2026-11-15T07:00:00.123456Z","attempt":1,"origin":"schedule"}"#;
    let parallel = settings.concurrency.min(settings.per_target * receivers.len());
    let began = Instant::now();
    let all = futures::stream::iter(0..wakes).map(|number| {
        let (client, url, secrets) = (client.clone(), urls[number % urls.len()].clone(), secrets.clone());
        tokio::spawn(async move {
            let id = format!("bare-{number}:2026-11-15T07:00:00Z");
            let wake = Wake {
                url: &url,
                named_by: NamedBy::Tenant,
                id: &id,
                body: body.to_vec(),
                secrets: &secrets,
                traceparent: None,
            };
            client.send(&wake, Duration::from_secs(30)).await
        })
    });
    let mut all = all.buffer_unordered(parallel);
    while let Some(outcome) = all.next().await {
        let outcome = outcome?;
        ensure!(
            matches!(outcome, Outcome::Answered { status: 204, .. }),
            "a bare wake failed: {outcome:?}"
        );
    }
    Ok(f64::from(u32::try_from(wakes)?) / began.elapsed().as_secs_f64())
}
