//! What a server refused, by what its caller can do about it.

use stationmaster_client::Error;

use super::{Kind, Report};

/// What a server said, or that it said nothing.
pub(super) fn report(error: &Error) -> Report<'static> {
    let (kind, advice) = match error {
        Error::Settings(_) => (Kind::Usage, "Mend --url, the context or STATIONMASTER_TOKEN"),
        Error::Unauthenticated(_) => (
            Kind::Denied,
            "Set STATIONMASTER_TOKEN, or keep one: stationmaster contexts add NAME --url URL --token-file FILE",
        ),
        Error::Forbidden(_) => (
            Kind::Denied,
            "Use a token with that role and workspace: stationmaster tokens create",
        ),
        Error::NotFound(_) => (
            Kind::NotFound,
            "See which there are: stationmaster NOUN list; a token sees only its own workspaces",
        ),
        Error::Conflict(_) | Error::Precondition(_) => (Kind::Conflict, "Look at it again"),
        Error::Invalid(_) => (Kind::Usage, "Change the request; nothing was done"),
        Error::RateLimited { .. } => (Kind::Unavailable, "Try again in a moment"),
        Error::Unavailable { .. } => (
            Kind::Unavailable,
            "Ask again; the server's /readyz tells what is missing",
        ),
        Error::Transport(_) => (
            Kind::Unavailable,
            "Is the server running, and is its address right? See: stationmaster contexts list",
        ),
        Error::Answer(_) => (
            Kind::Failed,
            "Is there a Stationmaster of this version at that address?",
        ),
    };
    let id = error.problem().and_then(|problem| problem.request_id.as_deref());
    let message = match id.filter(|_| kind == Kind::Unavailable) {
        Some(id) => format!("{error} (request {id})"),
        None => error.to_string(),
    };
    Report::new(kind, message, Some(advice))
}
