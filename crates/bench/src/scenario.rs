//! The scenarios: each loads, runs, measures, and says what the figures are to be compared with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use serde::Serialize;
use serde_json::value::RawValue;
use stationmaster_core::db::Database;
use stationmaster_core::engine::{Engine, StartOutcome, StartRequest};
use stationmaster_core::executions::Settings;
use stationmaster_core::graph::Graph;
use stationmaster_core::id::{DefinitionId, ExecutionId, Token, VersionId, WorkspaceId};
use stationmaster_core::observe::Metrics;

use crate::bare;
use crate::fixture::{Load, load_items, make_workspaces, rest, wipe};
use crate::measure::{Outcome, outcome};
use crate::run::{Question, Where, executions, start_servers, stop_servers, wait_for};

pub(crate) const FINISHED: Question = Question {
    how_many: "select count(*) from stationmaster_internal.executions_finished",
    is_anything_left: "select exists (select from stationmaster_internal.executions_active)
                           or exists (select from stationmaster_internal.queue_pending)",
};
const STARTED: Question = Question {
    how_many: "select count(*) from stationmaster_internal.executions_active where state = 'RUNNING'",
    is_anything_left:
        "select exists (select from stationmaster_internal.executions_active where state = 'STARTING')
                           or exists (select from stationmaster_internal.queue_pending)",
};
/// From the first claim to the last start on record, in seconds.
const STARTING: &str = "select extract(epoch from max(dispatched_at) - min(claimed_at))::double precision
                        from stationmaster_internal.executions_active";

/// What a scenario is told while it works.
pub trait Progress {
    /// A new part begins, with this many steps.
    fn part(&mut self, name: &str, steps: usize);
    /// So many steps of the part are done.
    fn at(&mut self, steps: usize);
}

/// A run of servers over a loaded queue.
#[derive(Debug, Serialize)]
pub struct Ran {
    /// What the rows say.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Items enqueued per second, while loading.
    pub enqueued_per_second: f64,
    /// Executions per second if every slot were busy with work and nothing else, when the work takes time.
    pub ideal_per_second: Option<f64>,
    /// Of the ideal.
    pub share_of_ideal: Option<f64>,
    /// The same work as bare SQL, per second, when there is no work but that.
    pub bare_per_second: Option<f64>,
    /// Of the bare figure.
    pub share_of_bare: Option<f64>,
}

/// Loads a queue, runs servers on the embedded engine until it is empty.
pub async fn embedded(
    url: &str,
    load: &Load,
    servers: usize,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Ran> {
    let (outcome, loading) = run(url, load, servers, settings, progress).await?;
    let slots: f64 = load.limits.iter().map(|limit| f64::from(*limit)).sum();
    let ideal = (!load.work.is_zero()).then(|| slots / load.work.as_secs_f64());
    let bare = if load.work.is_zero() {
        progress.part("the same as bare SQL", 1);
        let limit = load.limits.iter().copied().max().unwrap_or(1);
        Some(
            bare::cycles_per_second(url, load.items, load.limits.len(), limit, settings.batch_size, 4)
                .await?,
        )
    } else {
        None
    };
    Ok(Ran {
        enqueued_per_second: per_second(load.items, loading),
        share_of_ideal: ideal.map(|ideal| outcome.per_second / ideal),
        ideal_per_second: ideal,
        share_of_bare: bare.map(|bare| outcome.per_second / bare),
        bare_per_second: bare,
        outcome,
    })
}

/// Executions per second of one run, and nothing beside it.
pub(crate) async fn throughput(
    url: &str,
    load: &Load,
    servers: usize,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<f64> {
    Ok(run(url, load, servers, settings, progress).await?.0.per_second)
}

/// Loads a queue and empties it. Answers what the rows say, and how long loading took.
async fn run(
    url: &str,
    load: &Load,
    servers: usize,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<(Outcome, Duration)> {
    let database = Database::new(url, 4)?;
    wipe(&database).await?;
    make_workspaces(&database, load).await?;
    progress.part("enqueue", load.items);
    let loading = load_items(&database, load, |done| progress.at(done)).await?;
    rest(&database).await?;
    progress.part("run", load.items);
    let metrics = Arc::new(Metrics::new());
    let stations = start_servers(url, servers, &executions(settings), &Where::Embedded, &metrics).await?;
    wait_for(&database, FINISHED, load.items, |done| progress.at(done)).await?;
    let outcome = outcome(&database, &metrics).await?;
    stop_servers(&stations).await;
    Ok((outcome, loading))
}

/// Starts on an engine of its own.
#[derive(Debug, Serialize)]
pub struct Starts {
    /// Started through the product, per second.
    pub per_second: f64,
    /// Started by bare parallel calls of the same client, per second; the mean of before and after.
    pub bare_per_second: f64,
    /// Of the bare figure.
    pub share_of_bare: f64,
}

/// Starts `items` executions on an engine, through the product and bare.
pub async fn starts(
    url: &str,
    engine: Arc<dyn Engine>,
    items: usize,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Starts> {
    let database = Database::new(url, 4)?;
    let load = Load::of(vec![i32::try_from(items)?; 10], items);
    wipe(&database).await?;
    make_workspaces(&database, &load).await?;
    load_items(&database, &load, |_| {}).await?;
    progress.part("bare starts", items / 2);
    let before = bare_starts(&engine, items / 2, settings).await?;
    progress.part("starts through the product", items);
    let (place, metrics) = (Where::Outside(Arc::clone(&engine)), Arc::new(Metrics::new()));
    let stations = start_servers(url, 1, &executions(settings), &place, &metrics).await?;
    wait_for(&database, STARTED, items, |done| progress.at(done)).await?;
    let seconds: f64 = sqlx::query_scalar(STARTING).fetch_one(&database.pool()).await?;
    let product = per_second(items, Duration::from_secs_f64(seconds));
    stop_servers(&stations).await;
    progress.part("bare starts again", items / 2);
    let after = bare_starts(&engine, items / 2, settings).await?;
    let bare = f64::midpoint(before, after);
    Ok(Starts {
        per_second: product,
        bare_per_second: bare,
        share_of_bare: product / bare,
    })
}

async fn bare_starts(engine: &Arc<dyn Engine>, items: usize, settings: &Settings) -> Result<f64> {
    let graph = Arc::new(Graph::parse(r#"{"nodes": [{"id": "work"}]}"#).context("the benchmark's graph")?);
    let began = Instant::now();
    let starts = futures::stream::iter(0..items).map(|n| {
        let request = StartRequest {
            execution_id: ExecutionId::new(),
            token: Token(0),
            again: false,
            workspace_id: WorkspaceId::new(),
            definition_id: DefinitionId::new(),
            version_id: VersionId::new(),
            workflow_type: settings.workflow_type.clone(),
            task_queue: settings.task_queue.clone(),
            graph: Arc::clone(&graph),
            input: RawValue::from_string(format!("{{\"n\": {n}}}")).unwrap_or_default(),
            traceparent: None,
            run_timeout: None,
        };
        async move { engine.start(&request, settings.start_timeout).await }
    });
    let mut starts = starts.buffer_unordered(settings.start_concurrency);
    while let Some(outcome) = starts.next().await {
        anyhow::ensure!(
            matches!(outcome, StartOutcome::Running { .. }),
            "a bare start did not succeed: {outcome:?}"
        );
    }
    Ok(per_second(items, began.elapsed()))
}

#[expect(clippy::cast_precision_loss, reason = "a count of items")]
fn per_second(items: usize, took: Duration) -> f64 {
    items as f64 / took.as_secs_f64()
}
