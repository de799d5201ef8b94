//! Lines that belong to a trace name it: `trace_id` and `span_id`, as the collector knows them. Whoever reads a line finds the trace, and
//! whoever looks at a trace finds its lines.

use std::fmt;

use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::config::LogFormat;

/// Writes what `inner` writes, and the trace behind it.
pub(super) struct Traced<F> {
    pub(super) inner: F,
    pub(super) format: LogFormat,
}

impl<S, N, F> FormatEvent<S, N> for Traced<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(span) = current() else {
            return self.inner.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        let (trace, span) = (span.trace_id(), span.span_id());
        let line = line.trim_end();
        match self.format {
            LogFormat::Pretty => writeln!(writer, "{line} trace_id={trace} span_id={span}"),
            LogFormat::Json => {
                let line = line.strip_suffix('}').unwrap_or(line);
                writeln!(writer, r#"{line},"trace_id":"{trace}","span_id":"{span}"}}"#)
            }
        }
    }
}

/// The span that this thread is in, if there is one that is sent anywhere.
fn current() -> Option<SpanContext> {
    let context = opentelemetry::Context::current();
    let about = context.span().span_context().clone();
    (about.is_valid() && about.is_sampled()).then_some(about)
}
