//! What the API refused, by what its caller can do about it. The API classifies; here is one table from its kinds to exit codes
//! and advice, the same for a server and for a database.

use stationmaster_client::Error;
use stationmaster_client::wire::{FieldError, Problem};
use stationmaster_core::tls::{self, Peer};

use super::{Kind, Report};

/// What to do about each problem, by its name.
const PROBLEMS: &[(&str, Kind, &str)] = &[
    (
        "unauthenticated",
        Kind::Denied,
        "Set STATIONMASTER_TOKEN, or keep one: stationmaster contexts add NAME --url URL --token-file FILE",
    ),
    (
        "forbidden",
        Kind::Denied,
        "Use a token with that role and workspace (stationmaster tokens create NAME --role ROLE), or a database role with rights on our tables",
    ),
    (
        "not-found",
        Kind::NotFound,
        "See which there are by the list of its noun; a token sees only its own workspaces",
    ),
    (
        "idempotency-conflict",
        Kind::Conflict,
        "Take another key, or repeat the first request as it was",
    ),
    (
        "conflict",
        Kind::Conflict,
        "Look how it is now; nothing was changed",
    ),
    (
        "bad-cursor",
        Kind::Usage,
        "Give what the list before said, or leave it out",
    ),
    ("invalid", Kind::Usage, "Change the request; nothing was done"),
    ("rate-limited", Kind::Unavailable, "Try again in a moment"),
    (
        "internal",
        Kind::Failed,
        "The log of the server, or of the database, may tell more",
    ),
    (
        "unavailable",
        Kind::Unavailable,
        "Ask again; see what is missing: stationmaster doctor",
    ),
];

/// What is looked for when something is not there: the words of a 404 begin with it.
const THINGS: &[(&str, &str)] = &[
    ("there is no workspace", "workspaces list"),
    ("there is no plan", "plans list"),
    ("there is no workflow", "workflows list"),
    ("there is no queue item", "queue list"),
    ("there is no execution", "executions list"),
    ("there is no alarm", "alarms list"),
    ("there is no signal", "signals list"),
    ("there is no dispatcher", "dispatchers list"),
    ("there is no lock", "locks list"),
    ("there is no token", "tokens list"),
    ("there is no operation", "operations list"),
    ("there is no server", "servers list"),
    ("there is no group of failures", "failures list"),
    ("workspace", "workflows list"),
    ("project", "triggers list"),
];

/// A server, as a command sees it.
const SERVER: Peer = Peer {
    name: "the server",
    authority: "name the authority that signed it by --ca-file, or in the context",
    host: "use the name that the certificate has in --url, or in the context",
    own: "servers ask for no certificate, so something else answers at this address",
};

/// What was said, or that nobody answered.
pub(super) fn report(error: &Error) -> Report<'static> {
    if let Some(words) = tls::explain(error, &SERVER) {
        return Report::new(Kind::Unavailable, words, None);
    }
    let (kind, advice) = match error {
        Error::Settings(_) => (Kind::Usage, "Mend --url, the context or STATIONMASTER_TOKEN"),
        Error::Transport(error) if error.is_timeout() && !error.is_connect() => (
            Kind::Unavailable,
            "It is busy, or waits for something that is away; see which: stationmaster doctor",
        ),
        Error::Transport(_) => (
            Kind::Unavailable,
            "Is the server running, and is its address right? See: stationmaster contexts list",
        ),
        Error::Answer(_) => (
            Kind::Failed,
            "Is there a Stationmaster of this version at that address?",
        ),
        _ => about(error),
    };
    let id = error.problem().and_then(|problem| problem.request_id.as_deref());
    let message = match id.filter(|_| matches!(kind, Kind::Unavailable | Kind::Failed)) {
        Some(id) => format!("{error} (request {id})"),
        None => fields(error).unwrap_or_else(|| error.to_string()),
    };
    let found = error.problem().and_then(where_to_look);
    let advice = found.map_or_else(
        || advice.to_owned(),
        |list| format!("See which there are: stationmaster {list}"),
    );
    Report::new(kind, message, Some(&advice))
}

/// What is wrong with each field, by the name that people know: a pointer is for programs.
fn fields(error: &Error) -> Option<String> {
    let Error::Invalid(problem) = error else {
        return None;
    };
    let told = |one: &FieldError| {
        let name = one.field.trim_start_matches('/').replace('/', ".");
        if name.is_empty() {
            one.detail.clone()
        } else {
            format!("{name}: {}", one.detail)
        }
    };
    let told: Vec<String> = problem.errors.iter().map(told).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// By its name; a problem that has no line of its own is like the others with its status.
fn about(error: &Error) -> (Kind, &'static str) {
    let of = |name| PROBLEMS.iter().find(|(known, ..)| *known == name);
    let like = match error {
        Error::Unauthenticated(_) => "unauthenticated",
        Error::Forbidden(_) => "forbidden",
        Error::NotFound(_) => "not-found",
        Error::Conflict(_) | Error::Precondition(_) => "conflict",
        Error::RateLimited { .. } => "rate-limited",
        Error::Unavailable { .. } => "unavailable",
        _ => "invalid",
    };
    let found = error.name().and_then(of).or_else(|| of(like));
    found.map_or((Kind::Failed, ""), |(_, kind, advice)| (*kind, advice))
}

fn where_to_look(problem: &Problem) -> Option<&'static str> {
    let words = problem.detail.as_deref().filter(|_| problem.status == 404)?;
    let thing = THINGS.iter().find(|(thing, _)| words.starts_with(thing));
    thing.map(|(_, list)| *list)
}
