//! How the program ends: the one place where an error becomes words and an exit code. One line says what is wrong, one what
//! to do. Commands return typed errors and know nothing of codes.
//!
//! What went wrong with a piece of work is told by the API, whichever way it was asked, and stands in `client`. What remains
//! here is what a command meets before it asks: its own arguments, the settings, the database.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use serde::Serialize;
use stationmaster_core::db;
use stationmaster_core::pooler::BEHIND_A_POOLER;
use stationmaster_core::task::chain;
use stationmaster_schedule::{ParseError, UnknownZone};

use crate::command::typed;
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
        if let Some(error) = error.downcast_ref::<db::Error>() {
            return of_database(error);
        }
        Self::new(Kind::Failed, format!("{error:#}"), None)
    }

    fn print(&self, format: Format) -> ExitCode {
        match format {
            Format::Json => say(serde_json::json!({ "error": self })),
            Format::People => {
                say(format_args!("error: {}", printable(&self.message)));
                for line in self.place.iter().flat_map(|place| place.pointed.lines()) {
                    say(format_args!("  {line}"));
                }
                for complaint in self.complaints {
                    say(format_args!("  {complaint}"));
                }
                if let Some(advice) = &self.advice {
                    say(format_args!("  {advice}"));
                }
            }
        }
        ExitCode::from(self.exit_code)
    }
}

/// A line on standard error; where nothing can be written there, the exit code tells enough.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
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
    let report = Report::of(error);
    let advice = report.advice.as_deref().map(typed::advice);
    Report { advice, ..report }.print(format)
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

const AWAY: &str =
    "Is PostgreSQL running, and does the setting database_url name it? See: stationmaster config show";

fn of_database(error: &db::Error) -> Report<'static> {
    use db::Error;
    let (kind, advice) = match error {
        Error::Url(_) => (Kind::Usage, "Mend the setting database_url"),
        Error::Schema { found, needed } if found > needed => {
            let message = format!(
                "the tables are at version {found}, and this program knows them up to version {needed}"
            );
            let advice = "They belong to a newer version: use that version of this program";
            return Report::new(Kind::Unavailable, message, Some(advice));
        }
        // The message says what to run.
        Error::Schema { .. }
        | Error::Parts(_)
        | Error::NewerParts(_)
        | Error::BeforeRelease
        | Error::Torn { .. }
        | Error::Untrusted(_)
        | Error::Unusable(_) => {
            return Report::new(Kind::Unavailable, error.to_string(), None);
        }
        Error::TooOld { .. } => (Kind::Unavailable, "Use a newer PostgreSQL"),
        Error::Sql(sqlx::Error::Io(cause)) => {
            let message = format!("the database could not be reached: {cause}");
            return Report::new(Kind::Unavailable, message, Some(AWAY));
        }
        _ if error.is_of_a_pooler() => (Kind::Usage, BEHIND_A_POOLER),
        _ if error.is_away() => (Kind::Unavailable, AWAY),
        _ => (Kind::Failed, "The database refused; its own log may tell more"),
    };
    Report::new(kind, chain(error), Some(advice))
}

#[cfg(test)]
mod tests;
