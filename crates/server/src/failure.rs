//! How the program ends: the one place where an error becomes words and an exit code. One line says what is wrong, one what
//! to do. Commands return typed errors and know nothing of codes.

use std::io::ErrorKind;
use std::process::ExitCode;

use serde::Serialize;
use stationmaster_core::{access, alarms, catalogue, db, executions, locks, signals};
use stationmaster_schedule::{ParseError, UnknownZone};

use crate::config::{Complaint, Complaints};
use crate::output::{Format, printable};

mod client;

/// Printed below every help text and in docs/cli.md.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed; doctor: there is a problem; executions watch: it ended badly
  2  wrong usage or configuration
  3  not found
  4  conflict, or not possible in this state
  5  the database, the server or the engine is not available, or the tables are not those of this version
  6  the token is missing, opens no door, or may not do this
  75  lock run: the lock was taken (otherwise its code is that of its command, or 128 and the number of a signal)
  79  lock run: the lock was lost while the command ran; a command still running was stopped
  125  lock run: the lock could not be asked for, and the command was not run
  126  lock run: the command cannot be run
  127  lock run: there is no such command";

/// The kinds of end, each with its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Something broke.
    Failed = 1,
    /// The caller asked for something that cannot be.
    Usage = 2,
    /// It is not there.
    NotFound = 3,
    /// It is there, but not like this.
    Conflict = 4,
    /// Somebody whom we need is away.
    Unavailable = 5,
    /// A token is needed that may do this.
    Denied = 6,
    /// Somebody else has the lock: the code of "try again later" among those of sysexits.
    Taken = 75,
    /// The lock was lost: a code that neither shells nor sysexits use.
    Lost = 79,
    /// A command cannot be run, by the custom of shells.
    CannotRun = 126,
    /// There is no such command, by the custom of shells.
    NoSuchCommand = 127,
}

/// By the custom of programs that run others: they failed themselves, before they ran anything.
const BEFORE_THE_COMMAND: u8 = 125;

/// An error of a command that runs another, before it did: its code must not be taken for the other's.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct BeforeTheCommand(pub(crate) anyhow::Error);

/// The end of another program, to be our own. There is nothing to say about it.
#[derive(Debug, thiserror::Error)]
#[error("the command ended with {0}")]
pub(crate) struct PassedOn(pub(crate) u8);

/// A command's own refusal: what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    kind: Kind,
    message: String,
    advice: String,
}

impl Refusal {
    pub(crate) fn new(kind: Kind, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            advice: advice.into(),
        }
    }

    /// The caller asked for something that cannot be.
    pub(crate) fn usage(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message, advice)
    }
}

/// A cron expression that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct BadExpression {
    /// The expression.
    pub(crate) text: String,
    /// What is wrong with it, and where.
    pub(crate) error: ParseError,
}

/// Where in an expression something is wrong.
#[derive(Debug, Serialize)]
struct Place {
    expression: String,
    /// The first byte, and the first behind it.
    start: usize,
    end: usize,
    /// The expression with carets below it.
    #[serde(skip)]
    pointed: String,
}

/// What the user is told.
#[derive(Debug, Serialize)]
struct Report<'a> {
    kind: Kind,
    exit_code: u8,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    #[serde(skip_serializing_if = "<[Complaint]>::is_empty")]
    complaints: &'a [Complaint],
}

impl<'a> Report<'a> {
    fn new(kind: Kind, message: impl Into<String>, advice: Option<&str>) -> Self {
        let advice = advice.map(str::to_owned);
        Self {
            kind,
            exit_code: kind as u8,
            message: message.into(),
            place: None,
            advice,
            complaints: &[],
        }
    }

    fn of(error: &'a anyhow::Error) -> Self {
        if let Some(complaints) = error.downcast_ref::<Complaints>() {
            let report = Self::new(Kind::Usage, complaints.to_string(), None);
            return Self {
                complaints: &complaints.0,
                ..report
            };
        }
        if let Some(Refusal {
            kind,
            message,
            advice,
        }) = error.downcast_ref()
        {
            return Self::new(*kind, message, Some(advice));
        }
        if let Some(bad) = error.downcast_ref::<BadExpression>() {
            return of_expression(bad);
        }
        if let Some(unknown) = error.downcast_ref::<UnknownZone>() {
            let advice = "Zones have the names of the IANA database";
            return Self::new(Kind::Usage, unknown.to_string(), Some(advice));
        }
        if let Some(BeforeTheCommand(error)) = error.downcast_ref() {
            return Self {
                exit_code: BEFORE_THE_COMMAND,
                ..Self::of(error)
            };
        }
        if let Some(error) = error.downcast_ref::<stationmaster_client::Error>() {
            return client::report(error);
        }
        if let Some(error) = error.downcast_ref::<locks::Error>() {
            return of_lock(error);
        }
        if let Some(report) = of_alarms(error) {
            return report;
        }
        if let Some(error) = error.downcast_ref::<catalogue::Error>() {
            return of_catalogue(error);
        }
        if let Some(error) = error.downcast_ref::<executions::operate::Error>() {
            return of_operation(error);
        }
        if let Some(error) = error.downcast_ref::<executions::enqueue::Error>() {
            return of_enqueue(error);
        }
        if let Some(error) = error.downcast_ref::<access::Error>() {
            return of_access(error);
        }
        if let Some(error) = error.downcast_ref::<signals::send::Error>() {
            return of_send(error);
        }
        if let Some(error) = error.downcast_ref::<signals::triggers::Error>() {
            return of_trigger(error);
        }
        if let Some(error) = error.downcast_ref::<signals::replay::Error>() {
            return of_replay(error);
        }
        if let Some(error) = error.downcast_ref::<db::Error>() {
            return of_database(error);
        }
        Self::new(Kind::Failed, format!("{error:#}"), None)
    }

    fn print(&self, format: Format) -> ExitCode {
        match format {
            Format::Json => eprintln!("{}", serde_json::json!({ "error": self })),
            Format::People => {
                eprintln!("error: {}", printable(&self.message));
                for line in self.place.iter().flat_map(|place| place.pointed.lines()) {
                    eprintln!("  {line}");
                }
                for complaint in self.complaints {
                    eprintln!("  {complaint}");
                }
                if let Some(advice) = &self.advice {
                    eprintln!("  {advice}");
                }
            }
        }
        ExitCode::from(self.exit_code)
    }
}

/// Tells the user, and gives the code to end with.
pub(crate) fn report(error: &anyhow::Error, format: Format) -> ExitCode {
    // The reader of our output has seen enough, as `head` does.
    if error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    {
        return ExitCode::SUCCESS;
    }
    if let Some(PassedOn(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    Report::of(error).print(format)
}

/// Is somebody away whom we need, so that the same may succeed later?
pub(crate) fn is_away(error: &anyhow::Error) -> bool {
    Report::of(error).kind == Kind::Unavailable
}

/// Tells the user that the command line was not understood.
pub(crate) fn report_usage(error: &clap::Error, format: Format) -> ExitCode {
    if format == Format::Json {
        let text = error.render().to_string();
        let message = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        // What may have been meant, and what there is to choose from.
        let tips: Vec<&str> = text
            .lines()
            .skip(1)
            .map(str::trim)
            .filter(|line| line.starts_with("tip:") || line.starts_with("[possible values:"))
            .collect();
        let advice = [&tips[..], &["See --help."]].concat().join(" ");
        return Report::new(Kind::Usage, message, Some(&advice)).print(format);
    }
    let _ = error.print();
    ExitCode::from(Kind::Usage as u8)
}

fn of_alarms(error: &anyhow::Error) -> Option<Report<'static>> {
    use alarms::{edit, keys, operate, set};
    if let Some(error) = error.downcast_ref::<set::Error>() {
        return Some(of_alarm_request(error));
    }
    if let Some(error) = error.downcast_ref::<operate::Error>() {
        return Some(of_alarm_operation(error));
    }
    if let Some(error) = error.downcast_ref::<edit::Error>() {
        return Some(match error {
            edit::Error::Request(error) => of_alarm_request(error),
            edit::Error::Operation(error) => of_alarm_operation(error),
        });
    }
    let (kind, advice) = match error.downcast_ref::<keys::Error>()? {
        keys::Error::Exists(_) => (
            Kind::Conflict,
            "Give it the next one: stationmaster alarms secrets rotate URL",
        ),
        keys::Error::NotFound(_) => (
            Kind::NotFound,
            "Give it one: stationmaster alarms secrets create URL",
        ),
        keys::Error::Database(error) => return Some(of_database(error)),
    };
    Some(Report::new(kind, error.to_string(), Some(advice)))
}

fn of_alarm_request(error: &alarms::set::Error) -> Report<'static> {
    use alarms::set::Error;
    let (kind, advice) = match error {
        Error::Expression { pointed, at, .. } => {
            let place = Place {
                expression: pointed.lines().next().unwrap_or_default().to_owned(),
                start: at.start,
                end: at.end,
                pointed: pointed.clone(),
            };
            let advice = "Try expressions out with: stationmaster alarms next EXPR";
            return Report {
                place: Some(place),
                ..Report::new(Kind::Usage, error.to_string(), Some(advice))
            };
        }
        Error::Invalid(_) => (Kind::Usage, "Change the request; nothing was stored"),
        Error::Conflict => (
            Kind::Conflict,
            "Take another key, or repeat the first request as it was",
        ),
        Error::UnknownWorkspace(_) => (
            Kind::NotFound,
            "See which there are: stationmaster workspaces list",
        ),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

fn of_alarm_operation(error: &alarms::operate::Error) -> Report<'static> {
    use alarms::operate::Error;
    let (kind, advice) = match error {
        Error::NotFound(_) => (Kind::NotFound, "See which there are: stationmaster alarms list"),
        Error::WrongState(_) => (
            Kind::Conflict,
            "See how it got there: stationmaster alarms show ID",
        ),
        Error::Invalid(_) => (Kind::Usage, "Change the request; nothing was done"),
        Error::Unexpected => (Kind::Conflict, "Look at it again"),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

fn of_expression(BadExpression { text, error }: &BadExpression) -> Report<'static> {
    let place = Place {
        expression: text.clone(),
        start: error.at.start,
        end: error.at.end,
        pointed: error.pointed(text),
    };
    Report {
        place: Some(place),
        ..Report::new(Kind::Usage, error.to_string(), None)
    }
}

fn of_catalogue(error: &catalogue::Error) -> Report<'static> {
    use catalogue::Error;
    let (kind, advice) = match error {
        Error::UnknownPlan(..) => (
            Kind::Usage,
            "Choose one of them, or make a new one: stationmaster plans set NAME --limit N",
        ),
        Error::UnknownWorkspace(_) => (
            Kind::NotFound,
            "See which there are: stationmaster workspaces list",
        ),
        Error::UnknownDefinition(_) => (
            Kind::NotFound,
            "See which there are: stationmaster workflows list",
        ),
        Error::UnknownVersion(..) => (
            Kind::Usage,
            "Add one: stationmaster workflows add-version ID --graph FILE",
        ),
        Error::OtherWorkspace(_) => (
            Kind::Conflict,
            "A workflow never moves: create another one, with an id of its own",
        ),
        Error::Graph(_) => (Kind::Usage, "Mend the graph; nothing was stored"),
        Error::Invalid(_) => (Kind::Usage, "Give another value; nothing was stored"),
        Error::Unexpected => (Kind::Conflict, "Look at it again"),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

fn of_operation(error: &executions::operate::Error) -> Report<'static> {
    use executions::operate::Error;
    let (kind, advice) = match error {
        Error::NotFound(_) => (
            Kind::NotFound,
            "See which there are: stationmaster queue list, stationmaster executions list",
        ),
        Error::WrongState(_) => (
            Kind::Conflict,
            "See how it got there: stationmaster queue show ID",
        ),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

fn of_enqueue(error: &executions::enqueue::Error) -> Report<'static> {
    use executions::enqueue::Error;
    let (kind, advice) = match error {
        Error::TooLarge { .. } | Error::BadKey { .. } | Error::BadInput(_) => {
            (Kind::Usage, "Change the request; nothing was enqueued")
        }
        Error::Conflict { .. } => (
            Kind::Conflict,
            "Take another key, or repeat the first request as it was",
        ),
        Error::Unknown(_) => (
            Kind::NotFound,
            "See which there are, and whether they have a version: stationmaster workflows list --workspace ID",
        ),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

fn of_lock(error: &locks::Error) -> Report<'static> {
    use locks::Error;
    match error {
        Error::Invalid(_) => Report::new(
            Kind::Usage,
            error.to_string(),
            Some("Change the request; nothing was locked"),
        ),
        // The message says what to do.
        Error::Table(_) => Report::new(Kind::Unavailable, error.to_string(), None),
        Error::Database(error) => of_database(error),
    }
}

fn of_access(error: &access::Error) -> Report<'static> {
    use access::Error;
    let (kind, advice) = match error {
        Error::NameTaken(_) => (Kind::Conflict, "Take another name, or revoke that one first"),
        Error::NotFound(_) => (Kind::NotFound, "See which there are: stationmaster tokens list"),
        Error::Invalid(_) => (Kind::Usage, "Give another value; nothing was made"),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

fn of_send(error: &signals::send::Error) -> Report<'static> {
    use signals::send::Error;
    let (kind, advice) = match error {
        Error::TooLarge { .. } | Error::BadName { .. } | Error::BadPayload(_) => {
            (Kind::Usage, "Change the signal; nothing was sent")
        }
        Error::Conflict { .. } => (
            Kind::Conflict,
            "Take another id, or send the first signal again as it was",
        ),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

fn of_trigger(error: &signals::triggers::Error) -> Report<'static> {
    use signals::triggers::Error;
    let (kind, advice) = match error {
        Error::Unexpected => (Kind::Conflict, "Look at it again"),
        Error::BadName(_) | Error::BadSchema(_) => (Kind::Usage, "Change it; nothing was set"),
        Error::UnknownDefinition(_) => (
            Kind::NotFound,
            "See which there are: stationmaster workflows list --workspace ID",
        ),
        Error::OtherWorkspace(_) => (
            Kind::Conflict,
            "A project belongs to the workspace of its first trigger: take another project, or a workflow of that workspace",
        ),
        Error::NotFound { .. } => (Kind::NotFound, "See which there are: stationmaster triggers list"),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

fn of_replay(error: &signals::replay::Error) -> Report<'static> {
    use signals::replay::Error;
    let (kind, advice) = match error {
        Error::NotFound(_) => (Kind::NotFound, "See which there are: stationmaster signals dead"),
        Error::WrongState { .. } => (
            Kind::Conflict,
            "See what became of it: stationmaster signals show ID",
        ),
        Error::Database(error) => return of_database(error),
    };
    Report::new(kind, error.to_string(), Some(advice))
}

const AWAY: &str =
    "Is PostgreSQL running, and does the setting database_url name it? See: stationmaster config show";

fn of_database(error: &db::Error) -> Report<'static> {
    use db::Error;
    let (kind, advice) = match error {
        Error::Url(_) => (Kind::Usage, "Mend the setting database_url"),
        Error::Schema { found, needed } if found > needed => (
            Kind::Unavailable,
            "The tables belong to a newer version: use that version of this program",
        ),
        // The message says what to run.
        Error::Schema { .. }
        | Error::Parts(_)
        | Error::BeforeRelease
        | Error::Torn { .. }
        | Error::Unusable(_) => {
            return Report::new(Kind::Unavailable, error.to_string(), None);
        }
        Error::TooOld { .. } => (Kind::Unavailable, "Use a newer PostgreSQL"),
        Error::Timeout(_) => (Kind::Unavailable, AWAY),
        Error::Sql(sqlx::Error::Io(cause)) => {
            let message = format!("the database could not be reached: {cause}");
            return Report::new(Kind::Unavailable, message, Some(AWAY));
        }
        Error::Sql(cause) if database_is_away(cause, error.code().as_deref()) => (Kind::Unavailable, AWAY),
        Error::Sql(_) | Error::Migration { .. } => {
            (Kind::Failed, "The database refused; its own log may tell more")
        }
    };
    Report::new(kind, chain(error), Some(advice))
}

/// Could not be reached, would not let us in, or has no room for us now.
fn database_is_away(error: &sqlx::Error, code: Option<&str>) -> bool {
    let refused = |code: &str| {
        ["08", "28", "53", "57"]
            .iter()
            .any(|class| code.starts_with(class))
            || code == "3D000"
    };
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => {
            true
        }
        _ => code.is_some_and(refused),
    }
}

/// The message of an error and of its causes, without those that repeat what was said.
fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !message.contains(&words) {
            message = format!("{message}: {words}");
        }
        cause = error.source();
    }
    message
}

#[cfg(test)]
mod tests;
