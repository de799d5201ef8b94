//! Where the log and the traces go: the log to standard error, for people or as JSON; traces to an OpenTelemetry
//! collector when one is configured. Set up once, by the commands that run for long. Neither may hold up the work: see `lines`. What is said
//! again and again is counted: see `repeats`. What belongs to a trace names it: see `traced`.

mod lines;
mod repeats;
mod traced;

use anyhow::{Context as _, Result};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{Log, LogFormat, Traces};
use crate::output::colours_on_stderr;
use lines::Lines;
use repeats::Repeats;
use traced::Traced;

/// What must be told when the process ends, so that the last spans are sent. The last lines are written in any case.
#[must_use]
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
    lines: Lines,
    repeats: Repeats,
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.repeats.flush();
        self.lines.flush();
    }
}

impl Telemetry {
    /// Sends what has not been sent yet.
    pub(crate) async fn finish(mut self) {
        if let Some(provider) = self.traces.take() {
            // It waits for its own thread, which must not be done on a thread of the runtime.
            let done = tokio::task::spawn_blocking(move || provider.shutdown()).await;
            if let Ok(Err(error)) = done {
                tracing::warn!(%error, "The last spans could not be sent");
            }
        }
    }
}

/// Starts the log and, where asked for, the export of traces.
pub(crate) fn start(log: &Log, traces: &Traces) -> Result<Telemetry> {
    // PostgreSQL remarks at every start that things are there already. Whoever wants to read that says so behind it.
    let filter = EnvFilter::try_new(format!("sqlx::postgres::notice=warn,{}", log.level))?;
    let lines = Lines::start(log.format).context("the log could not be started")?;
    let repeats = Repeats::start(lines.clone(), log.repeat_after).context("the log could not be started")?;
    let (format, colours) = (log.format, colours_on_stderr());
    let filter = filter.and(repeats.clone());
    let written = tracing_subscriber::fmt::layer()
        .with_ansi(colours)
        .with_writer(lines.clone());
    let written = match format {
        LogFormat::Pretty => {
            let written = written.compact().map_event_format(|inner| Traced {
                inner: inner.with_ansi(colours),
                format,
            });
            written.with_filter(filter).boxed()
        }
        LogFormat::Json => {
            let written = written.json().flatten_event(true);
            let written = written.map_event_format(|inner| Traced { inner, format });
            written.with_filter(filter).boxed()
        }
    };
    let provider = traces
        .otlp_endpoint
        .as_deref()
        .map(|endpoint| provider(endpoint, traces))
        .transpose()?;
    let exported = provider.as_ref().map(|provider| {
        tracing_opentelemetry::layer::<_>()
            .with_tracer(provider.tracer("stationmaster"))
            // Spans of ours, whatever the level of the log; no events, which are the log's.
            .with_filter(filter_fn(|what| {
                what.is_span() && what.target().starts_with("stationmaster")
            }))
    });
    let started = Registry::default().with(written).with(exported).try_init();
    started.map_err(|error| anyhow::anyhow!("the log could not be started: {error}"))?;
    Ok(Telemetry {
        traces: provider,
        lines,
        repeats,
    })
}

fn provider(endpoint: &str, traces: &Traces) -> Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(std::time::Duration::from_secs(5))
        .build()
        .with_context(|| {
            format!("traces cannot be sent to {endpoint}: check the setting traces.otlp_endpoint")
        })?;
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(traces.sample)));
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(
            Resource::builder()
                .with_service_name(traces.service_name.clone())
                .build(),
        )
        .build())
}
