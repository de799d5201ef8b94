//! Tags: what a caller saw of a thing, so that it can change it only if it is still so (`ETag`, `If-Match`, `If-None-Match`).
//!
//! A tag is made from what can be changed, whoever changes it. The rules: `If-Match` with a tag or `*` holds only for a thing
//! that is there and has this tag; `If-None-Match: *` holds only for one that is not there; what does not hold is 412.
//! Without either a change is unconditional, unless the setting `http.require_if_match` asks for one: then it is 428.

use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header, request};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use stationmaster_core::catalogue::Expectation;

use super::State;
use super::problem::{Kind, Problem};

/// A thing that can be changed.
pub(super) trait Changeable {
    /// What can be changed of it.
    fn changeable(&self) -> impl Serialize;

    /// Its tag, quoted as in the header.
    fn tag(&self) -> String {
        let text = serde_json::to_vec(&self.changeable()).unwrap_or_default();
        let hash = Sha256::digest(text);
        let mut start = [0; 8];
        start.copy_from_slice(&hash[..8]);
        format!("\"{:016x}\"", u64::from_be_bytes(start))
    }
}

/// A thing that is told with its tag.
pub(super) struct Tagged<T>(pub(super) T);

impl<T: Changeable + Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let tag = HeaderValue::try_from(self.0.tag());
        let mut response = axum::Json(self.0).into_response();
        if let Ok(tag) = tag {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// What a caller expects of the thing that it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expected {
    Anything,
    /// There, whatever it is.
    There,
    /// There, with one of these tags.
    Tags(Vec<String>),
    /// Not there.
    Absent,
}

impl Expected {
    /// Does it hold for a thing with this tag? `None`: it is not there.
    pub(super) fn holds(&self, tag: Option<&str>) -> bool {
        match (self, tag) {
            (Self::Anything, _) | (Self::There, Some(_)) | (Self::Absent, None) => true,
            (Self::Tags(tags), Some(tag)) => tags.iter().any(|expected| expected == tag),
            (Self::There | Self::Tags(_), None) | (Self::Absent, Some(_)) => false,
        }
    }

    /// The same as the core asks it, under its lock, of the thing.
    pub(super) fn of<T: Changeable>(&self) -> Expectation<'_, T> {
        if *self == Self::Anything {
            return None;
        }
        Some(Box::new(|thing: Option<&T>| {
            self.holds(thing.map(T::tag).as_deref())
        }))
    }
}

impl FromRequestParts<State> for Expected {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, state: &State) -> Result<Self, Problem> {
        let expected = read(&parts.headers)?;
        if expected == Self::Anything && state.settings.require_if_match {
            let words = "send If-Match with the ETag that you saw, or If-None-Match: * to make a new one";
            return Err(Problem::new(Kind::PreconditionRequired, words));
        }
        Ok(expected)
    }
}

fn read(headers: &HeaderMap) -> Result<Expected, Problem> {
    let text = |name: &HeaderName| match headers.get(name).map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim())),
        Some(Err(_)) => Err(Problem::field(name.as_str(), "not text")),
    };
    match (text(&header::IF_MATCH)?, text(&header::IF_NONE_MATCH)?) {
        (None, None) => Ok(Expected::Anything),
        (None, Some("*")) => Ok(Expected::Absent),
        (Some("*"), None) => Ok(Expected::There),
        (Some(tags), None) => {
            let tags: Vec<String> = tags.split(',').map(|tag| tag.trim().to_owned()).collect();
            let strong = |tag: &String| tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"');
            if tags.iter().all(strong) {
                Ok(Expected::Tags(tags))
            } else {
                Err(Problem::field(
                    "If-Match",
                    "one or more quoted tags, as ETag gave them, or *",
                ))
            }
        }
        (None, Some(_)) => Err(Problem::field("If-None-Match", "for a change it can only be *")),
        (Some(_), Some(_)) => Err(Problem::field("If-Match", "not together with If-None-Match")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(name: HeaderName, value: &'static str) -> Result<Expected, Problem> {
        read(&HeaderMap::from_iter([(name, HeaderValue::from_static(value))]))
    }

    #[test]
    fn a_tag_tells_what_can_be_changed_and_nothing_else() {
        struct Thing {
            word: &'static str,
            number: i32,
            seen: i32,
        }
        impl Changeable for Thing {
            fn changeable(&self) -> impl Serialize {
                (self.word, self.number)
            }
        }
        let tag = |number, seen| {
            let thing = Thing {
                word: "a",
                number,
                seen,
            };
            (thing.tag(), thing.seen)
        };
        assert_eq!(tag(1, 1).0, tag(1, 2).0);
        assert_ne!(tag(1, 1).0, tag(2, 1).0);
    }

    #[test]
    fn expectations_hold_for_what_they_name() {
        let one = expected(header::IF_MATCH, "\"x\", \"y\"").unwrap();
        assert!(one.holds(Some("\"y\"")) && !one.holds(Some("\"z\"")) && !one.holds(None));
        let there = expected(header::IF_MATCH, "*").unwrap();
        assert!(there.holds(Some("\"z\"")) && !there.holds(None));
        let absent = expected(header::IF_NONE_MATCH, "*").unwrap();
        assert!(absent.holds(None) && !absent.holds(Some("\"z\"")));
        assert!(Expected::Anything.holds(None));
    }

    #[test]
    fn headers_that_mean_nothing_are_refused() {
        assert!(expected(header::IF_MATCH, "x").is_err());
        assert!(expected(header::IF_MATCH, "W/\"x\"").is_err());
        assert!(expected(header::IF_NONE_MATCH, "\"x\"").is_err());
    }
}
