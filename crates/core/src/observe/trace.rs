//! Traces of others: a span of ours is linked to the one in which the work was asked for.

use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Links the current span to the trace of whoever asked, when a valid `traceparent` came with the request.
pub(crate) fn link(traceparent: Option<&str>) {
    if let Some(context) = traceparent.and_then(parse) {
        tracing::Span::current().add_link(context);
    }
}

/// The trace that the current span belongs to, as an exemplar names it; `None` when it is sent nowhere.
pub(crate) fn exemplar() -> Option<[(&'static str, String); 1]> {
    let context = tracing::Span::current().context();
    let span = context.span();
    let about = span.span_context();
    (about.is_valid() && about.is_sampled()).then(|| [("trace_id", about.trace_id().to_string())])
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
