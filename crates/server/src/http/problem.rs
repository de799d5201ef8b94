//! Refusals by RFC 9457: every answer that is no success is `application/problem+json`, with a type that never changes its
//! meaning. A handler returns a [`Problem`]; it is written out in one place, [`render`], which also gives a body to refusals
//! that came from further below (no such route, wrong method) and names the request.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use stationmaster_client::wire;
use stationmaster_core::engine::embedded::nodes::{KNOWN, NodeProblem};
use stationmaster_core::executions::operate;
use stationmaster_core::graph::Fault;
use stationmaster_core::task::chain;
use stationmaster_core::{access, catalogue, db, locks, names};

/// The kinds of problems there are. The name is public.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $status:ident, $name:literal, $title:literal;)*) => {
        /// A kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$kind,)*];

            pub(super) fn status(self) -> StatusCode {
                match self { $(Self::$kind => StatusCode::$status,)* }
            }

            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            pub(super) fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)* }
            }
        }
    };
}

kinds! {
    /// Cannot be read.
    Malformed = BAD_REQUEST, "malformed", "The request cannot be read";
    /// A cursor that we did not give.
    BadCursor = BAD_REQUEST, "bad-cursor", "The cursor is not one of this list";
    /// No token, or none that opens the door.
    Unauthenticated = UNAUTHORIZED, "unauthenticated", "A valid token is needed";
    /// Not with this role, or not in this workspace.
    Forbidden = FORBIDDEN, "forbidden", "The token may not do this";
    /// Not there, or not to be seen.
    NotFound = NOT_FOUND, "not-found", "There is no such thing";
    /// Not by this method.
    MethodNotAllowed = METHOD_NOT_ALLOWED, "method-not-allowed", "Not by this method";
    /// The request did not arrive in time.
    RequestTimeout = REQUEST_TIMEOUT, "request-timeout", "The request took too long to arrive";
    /// It is there, but not like this.
    Conflict = CONFLICT, "conflict", "Not possible as things are";
    /// The key was used for another request.
    IdempotencyConflict = CONFLICT, "idempotency-conflict", "The idempotency key was used for another request";
    /// The same request is under way.
    IdempotencyUnderWay = CONFLICT, "idempotency-under-way", "The same request is being carried out";
    /// Somebody else has the lock.
    LockTaken = CONFLICT, "lock-taken", "Somebody else has the lock";
    /// The lock is not the caller's any more.
    LockLost = CONFLICT, "lock-lost", "The lock is not held any more";
    /// Changed since the caller looked.
    PreconditionFailed = PRECONDITION_FAILED, "precondition-failed", "It was changed since you looked";
    /// Too large.
    TooLarge = PAYLOAD_TOO_LARGE, "too-large", "The request is too large";
    /// The head of the request is too large.
    HeadTooLarge = REQUEST_HEADER_FIELDS_TOO_LARGE, "head-too-large", "The head of the request is too large";
    /// Not JSON.
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body must be JSON";
    /// Read, but it cannot be.
    Invalid = UNPROCESSABLE_ENTITY, "invalid", "Some values cannot be";
    /// If-Match is needed.
    PreconditionRequired = PRECONDITION_REQUIRED, "precondition-required", "Say what you saw: If-Match is needed";
    /// Too many requests.
    RateLimited = TOO_MANY_REQUESTS, "rate-limited", "Too many requests";
    /// Broken.
    Internal = INTERNAL_SERVER_ERROR, "internal", "Something is broken here";
    /// The database or something else that we need is away.
    Unavailable = SERVICE_UNAVAILABLE, "unavailable", "Something that is needed is not there now";
    /// Too much at once.
    Overloaded = SERVICE_UNAVAILABLE, "overloaded", "Too much is under way";
    /// Took too long.
    Timeout = SERVICE_UNAVAILABLE, "timeout", "It took too long";
    /// Not ready to work.
    NotReady = SERVICE_UNAVAILABLE, "not-ready", "This server is not ready";
    /// For a host that is none of ours.
    Misdirected = MISDIRECTED_REQUEST, "misdirected", "This is not the host that you asked for";
}

/// What a handler comes to.
pub(super) type Result<T, E = Problem> = std::result::Result<T, E>;

/// What a handler answers with: a thing of the wire.
pub(super) type Reply<T> = Result<axum::Json<T>>;

/// How much a refusal tells of its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// A cause inside is for our log, and the caller is told where to find it.
    Kept,
    /// Whoever asks is the operator, and has no log but the answer.
    Told,
}

/// Why a request is refused.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    /// What went wrong inside, in place of the detail for whoever may know it.
    cause: Option<String>,
    errors: Vec<wire::FieldError>,
    retry_after: Option<u64>,
    taken: Option<Box<wire::Taken>>,
    /// Something is broken, and for all that it is certain that nothing was done.
    undone: bool,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            cause: None,
            errors: Vec::new(),
            retry_after: None,
            taken: None,
            undone: false,
        }
    }

    fn undone(self) -> Self {
        Self { undone: true, ..self }
    }

    /// Is it certain that nothing was done? A refusal comes before the work; of what is broken only some know.
    pub(super) fn is_undone(&self) -> bool {
        self.undone || !self.kind.status().is_server_error()
    }

    pub(super) fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, detail)
    }

    /// One field is wrong.
    pub(super) fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let (field, detail) = (field.into(), detail.into());
        let words = format!("{field}: {detail}");
        Self::new(Kind::Invalid, words).with_errors(vec![wire::FieldError::new(field, detail)])
    }

    /// Several fields are wrong.
    pub(super) fn fields(errors: Vec<wire::FieldError>) -> Self {
        let words = errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.detail));
        let words = words.collect::<Vec<_>>().join("; ");
        Self::new(Kind::Invalid, words).with_errors(errors)
    }

    /// A field of a request, or of one of many: `at` is where they stand in the body, nothing when it is one. Without an
    /// index nobody knows which of them it is.
    pub(super) fn field_of(at: &str, index: Option<usize>, field: &str, words: String) -> Self {
        match (at, index) {
            ("", _) => Self::field(format!("/{field}"), words),
            (at, Some(index)) => Self::field(format!("{at}/{index}/{field}"), words),
            (at, None) => Self::field(at, words),
        }
    }

    /// What is wrong with each field, by the name that people know.
    pub(super) fn complaints(&self) -> Vec<String> {
        if self.errors.is_empty() {
            return vec![self.detail.clone()];
        }
        let told = |error: &wire::FieldError| {
            let name = error.field.trim_start_matches('/').replace('/', ".");
            format!("{name}: {}", error.detail)
        };
        self.errors.iter().map(told).collect()
    }

    pub(super) fn with_errors(mut self, errors: Vec<wire::FieldError>) -> Self {
        self.errors = errors;
        self
    }

    /// Somebody else has the lock.
    pub(super) fn taken(lock: &str, taken: wire::Taken) -> Self {
        let by = taken.by.as_deref().unwrap_or("somebody else");
        let problem = Self::new(
            Kind::LockTaken,
            format!("the lock {lock} is taken: {by} holds it"),
        );
        Self {
            taken: Some(Box::new(taken)),
            ..problem
        }
    }

    fn because(mut self, cause: String) -> Self {
        self.cause = Some(cause);
        self
    }

    /// When to try again, in seconds.
    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// As JSON, for an answer that is written by hand.
    pub(super) fn body(self, request_id: &str) -> Vec<u8> {
        serde_json::to_vec(&self.wire(Some(request_id))).unwrap_or_default()
    }

    /// As JSON with its cause, for whoever has no log in which to look for the request.
    fn whole(mut self) -> Vec<u8> {
        self.detail = self.cause.take().unwrap_or(self.detail);
        serde_json::to_vec(&self.wire(None)).unwrap_or_default()
    }

    fn wire(self, request_id: Option<&str>) -> wire::Problem {
        wire::Problem {
            kind: format!("urn:stationmaster:problem:{}", self.kind.name()),
            title: self.kind.title().to_owned(),
            status: self.kind.status().as_u16(),
            detail: Some(self.detail),
            request_id: request_id.map(str::to_owned),
            errors: self.errors,
            taken: self.taken.map(|taken| *taken),
        }
    }
}

/// What is wrong with a request, all of it: the fields that cannot be are told together. Another refusal is told when no field is wrong.
#[derive(Default)]
pub(super) struct Wrong {
    errors: Vec<wire::FieldError>,
    other: Option<Problem>,
}

impl Wrong {
    /// What a check comes to; what it refuses is kept for the end.
    pub(super) fn see<T, E: Into<Problem>>(&mut self, checked: Result<T, E>) -> Option<T> {
        let problem = match checked {
            Ok(value) => return Some(value),
            Err(error) => error.into(),
        };
        if problem.kind == Kind::Invalid && !problem.errors.is_empty() {
            let new = |error: &wire::FieldError| self.errors.iter().all(|known| known.field != error.field);
            let new: Vec<_> = problem.errors.into_iter().filter(new).collect();
            self.errors.extend(new);
        } else {
            self.other.get_or_insert(problem);
        }
        None
    }

    /// The refusal, if there is one.
    pub(super) fn told(self) -> Result<()> {
        if self.errors.is_empty() && self.other.is_none() {
            return Ok(());
        }
        Err(self.whole())
    }

    /// The refusal, where something was refused.
    pub(super) fn whole(self) -> Problem {
        match self.other {
            Some(problem) if self.errors.is_empty() => problem,
            _ => Problem::fields(self.errors),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.kind.status().into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.kind == Kind::Unauthenticated {
            let scheme = HeaderValue::from_static("Bearer realm=\"stationmaster\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// People are told in pages of their own.
fn is_page(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// Gives every refusal its body; other answers pass.
pub(super) fn render(mut response: Response, request_id: &str, detail: Detail) -> Response {
    let status = response.status();
    let problem = match response.extensions_mut().remove::<Problem>() {
        Some(problem) => problem,
        None if (status.is_client_error() || status.is_server_error()) && !is_page(&response) => bare(status),
        None => return response,
    };
    let body = match detail {
        Detail::Kept => problem.body(request_id),
        Detail::Told => problem.whole(),
    };
    let (mut parts, _) = response.into_parts();
    let kind = HeaderValue::from_static("application/problem+json");
    parts.headers.insert(header::CONTENT_TYPE, kind);
    parts.headers.remove(header::CONTENT_LENGTH);
    parts
        .headers
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Response::from_parts(parts, body.into())
}

/// A refusal that came from below the handlers.
fn bare(status: StatusCode) -> Problem {
    match status {
        StatusCode::NOT_FOUND => Problem::not_found("there is nothing at this address; see /docs"),
        StatusCode::METHOD_NOT_ALLOWED => Problem::new(
            Kind::MethodNotAllowed,
            "the header Allow names the methods that can be used here",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(Kind::TooLarge, "the body is larger than the server takes")
        }
        status if status.is_client_error() => Problem::new(Kind::Malformed, status.to_string()),
        status => Problem::new(Kind::Internal, status.to_string()),
    }
}

impl From<db::Error> for Problem {
    fn from(error: db::Error) -> Self {
        let code = error.code().unwrap_or_default();
        let cause = chain(&error);
        if error.is_busy() {
            let words = "the server is busy: every connection that it has for requests is in use; try again";
            return Self::new(Kind::Unavailable, words).retry_after(1);
        }
        match code.as_str() {
            // The request holds something that PostgreSQL cannot keep: a zero byte, a time beyond its calendar.
            code if code.starts_with("22") || code.starts_with("54") || code == "23514" => {
                Self::new(Kind::Invalid, error.message())
            }
            "42501" => {
                Self::new(Kind::Forbidden, "the token's workspaces do not include this").because(cause)
            }
            "57014" => {
                Self::new(Kind::Timeout, "the database took too long: narrow the filter").retry_after(1)
            }
            "40001" | "40P01" => {
                let problem = Self::new(Kind::Unavailable, "others were in the way; try again");
                problem.retry_after(1).undone()
            }
            "" => away(cause),
            _ if error.is_away() => away(cause),
            _ => {
                tracing::error!(error = cause, "A request failed in the database");
                let words = "the database refused; the server's log tells more";
                Self::new(Kind::Internal, words).because(cause).undone()
            }
        }
    }
}

fn away(cause: String) -> Problem {
    tracing::warn!(error = cause, "The database did not answer a request");
    let words = "the database does not answer; try again";
    Problem::new(Kind::Unavailable, words)
        .retry_after(1)
        .because(cause)
}

/// What is wrong with a node, and which type may have been meant.
fn node(problem: &NodeProblem) -> wire::FieldError {
    /// Less alike is another word.
    const ALIKE: f64 = 0.5;
    let alike = |known: &&str| {
        let unknown = problem.unknown.as_deref().unwrap_or_default();
        strsim::normalized_damerau_levenshtein(&unknown.to_lowercase(), known)
    };
    let best = KNOWN
        .iter()
        .max_by(|one, other| alike(one).total_cmp(&alike(other)));
    let meant = best.filter(|known| problem.unknown.is_some() && alike(known) >= ALIKE);
    let advice = meant.map(|known| format!("; did you mean {known:?}?"));
    wire::FieldError::new(
        format!("/workflow/nodes/{}/{}", problem.place, problem.field),
        format!("{}{}", problem.words, advice.unwrap_or_default()),
    )
}

/// What is wrong with a graph, where it stands in the body.
fn graph(fault: &Fault) -> wire::FieldError {
    wire::FieldError::new(format!("/workflow{}", fault.pointer), fault.words.clone())
}

impl From<catalogue::Error> for Problem {
    fn from(error: catalogue::Error) -> Self {
        use catalogue::Error;
        let words = error.to_string();
        match error {
            Error::UnknownPlan(..) => Self::field("/plan", words),
            Error::UnknownVersion(..) => Self::field("/published_version", words),
            Error::Graph(wrong) => Self::fields(wrong.faults.iter().map(graph).collect()),
            Error::Nodes(problems) => Self::fields(problems.iter().map(node).collect()),
            Error::UnknownWorkspace(_) | Error::UnknownDefinition(_) => Self::not_found(words),
            Error::OtherWorkspace(_) => {
                let advice = "a workflow never moves: make another one, with an id of its own";
                Self::new(Kind::Conflict, format!("{words}; {advice}"))
            }
            Error::Invalid(_) => Self::new(Kind::Invalid, words),
            Error::Taken(_) => Self::new(Kind::Conflict, words),
            Error::Unexpected => Self::new(Kind::PreconditionFailed, words),
            Error::Database(error) => error.into(),
        }
    }
}

impl From<names::Error> for Problem {
    fn from(error: names::Error) -> Self {
        match error {
            names::Error::Unknown { .. } => Self::not_found(error.to_string()),
            names::Error::Several { .. } => Self::new(Kind::Conflict, error.to_string()),
            names::Error::Database(error) => error.into(),
        }
    }
}

impl From<operate::Error> for Problem {
    fn from(error: operate::Error) -> Self {
        match error {
            operate::Error::NotFound(_) => Self::not_found(error.to_string()),
            operate::Error::WrongState(words) => Self::new(Kind::Conflict, words),
            operate::Error::Database(error) => error.into(),
        }
    }
}

impl From<access::Error> for Problem {
    fn from(error: access::Error) -> Self {
        match error {
            access::Error::NameTaken(_) => {
                let words = format!("{error}: take another name, or revoke that one first");
                Self::new(Kind::Conflict, words)
            }
            access::Error::NotFound(_) => Self::not_found(error.to_string()),
            access::Error::Invalid(words) => Self::new(Kind::Invalid, words),
            access::Error::Database(error) => error.into(),
        }
    }
}

impl From<locks::Error> for Problem {
    fn from(error: locks::Error) -> Self {
        match error {
            locks::Error::Invalid(words) => Self::new(Kind::Invalid, words),
            locks::Error::Table(words) => Self::new(Kind::Unavailable, words).undone(),
            locks::Error::Database(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_is_in_the_guide() {
        let guide = include_str!("../../../../docs/guides/http-api.md");
        let names: HashSet<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            let row = format!("| `{}` | {} |", kind.name(), kind.status().as_u16());
            assert!(guide.contains(&row), "docs/guides/http-api.md has no row {row:?}");
        }
    }
}
