//! What may go wrong, by what a caller does about it.

use std::time::Duration;

use crate::wire::{FieldError, Problem};

/// What came of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address or the token cannot be used.
    #[error("{0}")]
    Settings(String),
    /// No token, or one that opens no door (401).
    #[error("{}", told(.0))]
    Unauthenticated(Box<Problem>),
    /// The token may not do this, or not here (403).
    #[error("{}", told(.0))]
    Forbidden(Box<Problem>),
    /// There is no such thing, or the token may not see it (404).
    #[error("{}", told(.0))]
    NotFound(Box<Problem>),
    /// It is there, but not like this (409).
    #[error("{}", told(.0))]
    Conflict(Box<Problem>),
    /// It was changed since the caller looked (412), or the caller must say what it saw (428).
    #[error("{}", told(.0))]
    Precondition(Box<Problem>),
    /// The request cannot be carried out as it is (400, 413, 415, 422).
    #[error("{}", told(.0))]
    Invalid(Box<Problem>),
    /// Too many requests (429).
    #[error("{}", told(problem))]
    RateLimited {
        /// What was told.
        problem: Box<Problem>,
        /// When to try again.
        retry_after: Option<Duration>,
    },
    /// The server, or something that it needs, is not there now (5xx).
    #[error("{}", told(problem))]
    Unavailable {
        /// What was told.
        problem: Box<Problem>,
        /// When to try again.
        retry_after: Option<Duration>,
    },
    /// The server could not be reached, or its answer was cut off: whether the request was carried out is not known.
    #[error("{}", unanswered(.0))]
    Transport(#[source] reqwest::Error),
    /// An answer that is none of ours.
    #[error("the answer could not be understood: {0}")]
    Answer(String),
}

fn told(problem: &Problem) -> String {
    let words = problem.detail.as_deref().unwrap_or(&problem.title);
    // One wrong field is told by the words themselves.
    let rest = problem
        .errors
        .iter()
        .filter(|error| !words.contains(&error.detail));
    let fields: Vec<String> = rest
        .map(|error| format!("{}: {}", error.field, error.detail))
        .collect();
    if fields.is_empty() {
        words.to_owned()
    } else {
        format!("{words} ({})", fields.join("; "))
    }
}

/// Whoever was reached and did not answer is there.
fn unanswered(error: &reqwest::Error) -> String {
    if error.is_timeout() && !error.is_connect() {
        return "the server did not answer in time".to_owned();
    }
    format!("the server could not be reached: {}", causes(error))
}

/// The innermost cause says what happened: a name that is not known, a connection that was refused.
fn causes(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

impl Error {
    /// What the server said, when it said something.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Unauthenticated(problem)
            | Self::Forbidden(problem)
            | Self::NotFound(problem)
            | Self::Conflict(problem)
            | Self::Precondition(problem)
            | Self::Invalid(problem)
            | Self::RateLimited { problem, .. }
            | Self::Unavailable { problem, .. } => Some(problem),
            Self::Settings(_) | Self::Transport(_) | Self::Answer(_) => None,
        }
    }

    /// The name of the problem, such as `not-found` or `idempotency-conflict`: it never changes its meaning.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.problem().map(Problem::name)
    }

    /// The fields that are wrong.
    #[must_use]
    pub fn fields(&self) -> &[FieldError] {
        self.problem().map_or(&[], |problem| &problem.errors)
    }

    /// When the server asked to be tried again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => *retry_after,
            Self::Conflict(problem) if problem.name() == UNDER_WAY => Some(Duration::from_secs(1)),
            _ => None,
        }
    }

    /// May the same request do better in a moment?
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::RateLimited { .. } => true,
            // Broken is broken; away may come back.
            Self::Unavailable { problem, .. } => matches!(problem.status, 502..=504),
            Self::Transport(error) => !error.is_builder(),
            Self::Conflict(problem) => problem.name() == UNDER_WAY,
            _ => false,
        }
    }

    /// Is it certain that nothing was done?
    pub(crate) fn never_arrived(&self) -> bool {
        match self {
            Self::RateLimited { .. } => true,
            Self::Unavailable { problem, .. } => problem.name() == "overloaded",
            Self::Transport(error) => error.is_connect(),
            _ => false,
        }
    }

    pub(crate) fn of(problem: Problem, retry_after: Option<Duration>) -> Self {
        let status = problem.status;
        let problem = Box::new(problem);
        match status {
            401 => Self::Unauthenticated(problem),
            403 => Self::Forbidden(problem),
            404 => Self::NotFound(problem),
            409 => Self::Conflict(problem),
            412 | 428 => Self::Precondition(problem),
            429 => Self::RateLimited { problem, retry_after },
            500.. => Self::Unavailable { problem, retry_after },
            _ => Self::Invalid(problem),
        }
    }
}

/// The first try of the same request is not over yet.
const UNDER_WAY: &str = "idempotency-under-way";

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        // The address may hold what nobody should read in a log.
        Self::Transport(error.without_url())
    }
}
