//! Traces: a span of ours is linked to the one in which the work was asked for, and goes on where others work for us.

use std::collections::HashSet;

use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Links the current span to the trace of whoever asked, when a valid `traceparent` came with the request.
pub fn link(traceparent: Option<&str>) {
    if let Some(context) = traceparent.and_then(parse) {
        Span::current().add_link(context);
    }
}

/// What is done for several rounds at once is a step of each of them: a span below each, the first to work in. They end together,
/// when the answer is dropped. Rounds that nobody follows have none.
pub(crate) fn below<'a>(rounds: impl Iterator<Item = &'a Span>, step: impl Fn(&Span) -> Span) -> Steps {
    let mut seen = HashSet::new();
    let followed = rounds.filter(|round| round.id().is_some_and(|id| seen.insert(id)));
    Steps(followed.map(|round| (round.clone(), step(round))).collect())
}

/// See [`below`]: rounds and what is done for them.
pub(crate) struct Steps(Vec<(Span, Span)>);

impl Steps {
    pub(crate) fn first(&self) -> Span {
        self.0.first().map_or_else(Span::none, |(_, step)| step.clone())
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        for (round, step) in self.0.drain(..) {
            drop(step);
            // A span ends when it was last left: a round not before its last step.
            round.in_scope(|| {});
        }
    }
}

/// The current span as a `traceparent`, for whoever works for us; `None` when it is sent nowhere.
pub(crate) fn own() -> Option<String> {
    let about = current()?;
    let flags = about.trace_flags().to_u8();
    Some(format!("00-{}-{}-{flags:02x}", about.trace_id(), about.span_id()))
}

/// The trace that the current span belongs to, as an exemplar names it; `None` when it is sent nowhere.
pub(crate) fn exemplar() -> Option<[(&'static str, String); 1]> {
    current().map(|about| [("trace_id", about.trace_id().to_string())])
}

fn current() -> Option<SpanContext> {
    let context = Span::current().context();
    let about = context.span().span_context().clone();
    (about.is_valid() && about.is_sampled()).then_some(about)
}

/// A `traceparent` of the W3C: version, trace id, span id, flags, in hexadecimal.
fn parse(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let whole = version.len() == 2 && trace.len() == 32 && span.len() == 16 && flags.len() == 2;
    if !whole || version == "ff" {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::NONE,
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_traceparent_is_read_and_anything_else_is_left_alone() {
        let context = parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert!(context.is_sampled());
        for wrong in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-xyz7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
