//! The caller's trace, as the header `traceparent` of the W3C tells it: what is asked for in this request belongs to it, unless the body names another.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, request};

use super::State;
use super::problem::{Problem, Result};

/// The header, when it is one that others can read. Anything else is left alone, as the standard wants it.
pub(super) struct TraceParent(Option<String>);

impl TraceParent {
    /// The header's word, where no body has one.
    pub(super) fn header(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// What holds: the body's word before the header's. A header may be anybody's; a body that names what is no trace is a mistake. `at` is
    /// where the request stands in the body, nothing when it is one.
    pub(super) fn or_of_body(&self, body: Option<String>, at: &str) -> Result<Option<String>> {
        match body {
            Some(text) if !is_trace(&text) => {
                let words = "a trace context of the W3C is expected, like 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
                Err(Problem::field(format!("{at}/traceparent"), words))
            }
            body => Ok(body.or_else(|| self.0.clone())),
        }
    }
}

impl FromRequestParts<State> for TraceParent {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut request::Parts, _: &State) -> Result<Self, Infallible> {
        Ok(Self(read(&parts.headers)))
    }
}

pub(super) fn read(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    is_trace(text).then(|| text.to_owned())
}

/// Four parts of hexadecimal digits, none of which means nothing.
fn is_trace(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags] = parts[..] else {
        return false;
    };
    let is_hex = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_something = |part: &str| part.bytes().any(|byte| byte != b'0');
    let whole = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    whole && version != "ff" && is_something(trace) && is_something(span)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_header_that_is_no_trace_is_left_alone() {
        let with = |text: &str| {
            let headers = HeaderMap::from_iter([(
                "traceparent".parse().unwrap(),
                HeaderValue::from_str(text).unwrap(),
            )]);
            read(&headers)
        };
        let right = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(with(right).as_deref(), Some(right));
        for wrong in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        ] {
            assert_eq!(with(wrong), None, "{wrong}");
        }
        assert_eq!(read(&HeaderMap::new()), None);
        let header = TraceParent(Some(right.to_owned()));
        assert_eq!(header.or_of_body(None, "").unwrap().as_deref(), Some(right));
        assert!(header.or_of_body(Some("junk".to_owned()), "").is_err());
    }
}
