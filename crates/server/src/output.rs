//! What a command prints: JSON for machines, tables and sentences for people. Results go to stdout, everything else to
//! stderr. Text from the database may hold anything, so control characters never reach a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use comfy_table::{Cell, Color, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde::Serialize;

mod columns;

pub(crate) use columns::{
    Column, Described, Width, column, details, id, in_details, in_table, long, named, rows, rows_in, time,
};

/// For whom to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    People,
    Json,
}

impl Format {
    /// Prints a result.
    pub(crate) fn print<T: Serialize + ?Sized>(
        self,
        value: &T,
        for_people: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let text = self.view(value, false, for_people)?;
        writeln!(io::stdout().lock(), "{text}")?;
        Ok(())
    }

    /// A view that may be shown again and again; for machines on one line, so that each can be told from the next.
    pub(crate) fn view<T: Serialize + ?Sized>(
        self,
        value: &T,
        again: bool,
        for_people: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<String> {
        Ok(match self {
            Self::Json if again => serde_json::to_string(value)?,
            Self::Json => serde_json::to_string_pretty(value)?,
            Self::People => for_people(value),
        })
    }

    /// Tells people something beside the result.
    pub(crate) fn hint(self, text: &str) {
        if self == Self::People {
            crate::failure::say(text);
        }
    }

    /// Shows how far a long piece of work has come, on a terminal.
    pub(crate) fn progress(self, length: u64, what: &'static str) -> ProgressBar {
        if self == Self::Json || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let template = "{msg} {wide_bar} {human_pos}/{human_len}, {eta} left";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(length).with_style(style).with_message(what)
    }
}

/// Asks a person, when there is one; `None` when there is nobody to ask.
pub(crate) fn ask(question: &str) -> io::Result<Option<bool>> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(None);
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(Some(matches!(
        answer.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    )))
}

/// Rows under a header. Nothing is broken to fit the terminal: ids are there to be copied.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut table = plain();
    table.set_header(header.iter().map(Cell::new)).add_rows(rows);
    if table.is_empty() {
        return "Nothing found.".to_owned();
    }
    laid_out(table)
}

/// The fields of one thing, one a line.
pub(crate) fn fields(fields: impl IntoIterator<Item = (&'static str, Cell)>) -> String {
    let mut table = plain();
    table.add_rows(
        fields
            .into_iter()
            .map(|(name, value)| vec![Cell::new(name), value]),
    );
    laid_out(table)
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // Knows NO_COLOR, and terminals that cannot show colours.
    match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => table.force_no_tty(),
        _ => table.enforce_styling(),
    };
    table
}

fn laid_out(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// A cell with any text.
#[expect(
    clippy::needless_pass_by_value,
    reason = "cells are made in place, from temporaries"
)]
pub(crate) fn cell(text: impl ToString) -> Cell {
    Cell::new(printable(&text.to_string()))
}

/// A cell with text that may not be there.
pub(crate) fn maybe(text: Option<impl ToString>) -> Cell {
    text.map_or_else(|| Cell::new("-"), cell)
}

/// A cell with the beginning of a long text.
pub(crate) fn short(text: Option<&str>) -> Cell {
    const LENGTH: usize = 60;
    let text = text.unwrap_or("-");
    if text.chars().count() <= LENGTH {
        return cell(text);
    }
    cell(format!("{}…", text.chars().take(LENGTH - 1).collect::<String>()))
}

/// A cell with a status, in the colour of its meaning.
pub(crate) fn status(text: &str) -> Cell {
    let cell = cell(text);
    match text {
        "COMPLETED" | "RUNNING" | "DISPATCHED" | "ROUTED" | "up" | "free" | "active" | "fired" | "owned"
        | "resting" | "healthy" | "ok" => cell.fg(Color::Green),
        "FAILED" | "TERMINATED" | "TIMED_OUT" | "DEAD" | "gone" | "failed" | "stale" | "orphan"
        | "problem" => cell.fg(Color::Red),
        "PENDING" | "CLAIMED" | "STARTING" | "held" | "takes no work" | "engine down" | "paused"
        | "pending" | "claimed" | "retrying" | "vacant" | "silent" | "legacy" | "warning" => {
            cell.fg(Color::Yellow)
        }
        _ => cell,
    }
}

/// The word that a value is on the wire.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Control characters could move the cursor, or worse; a new line would only break the table.
pub(crate) fn printable(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// So many of them, in words that fit their number.
pub(crate) fn counted(count: impl TryInto<u64>, one: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// Colours are for terminals, and for nobody who does not want them.
pub(crate) fn colours_on_stderr() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// How long ago, or how long until.
pub(crate) fn age(at: Timestamp) -> String {
    age_at(at, Timestamp::now())
}

fn age_at(at: Timestamp, now: Timestamp) -> String {
    let passed = now.duration_since(at);
    let length = length(passed.unsigned_abs());
    if passed.is_negative() {
        format!("in {length}")
    } else {
        length
    }
}

/// The exact time and how far away it is.
pub(crate) fn moment(at: Timestamp) -> String {
    moment_at(at, Timestamp::now())
}

fn moment_at(at: Timestamp, now: Timestamp) -> String {
    let age = age_at(at, now);
    let age = if at > now { age } else { format!("{age} ago") };
    format!("{} ({age})", at.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

/// In its two largest units.
fn length(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (large, small) = match seconds {
        0..60 => return format!("{seconds}s"),
        60..3_600 => ((60, "m"), (1, "s")),
        3_600..86_400 => ((3_600, "h"), (60, "m")),
        _ => ((86_400, "d"), (3_600, "h")),
    };
    match seconds % large.0 / small.0 {
        0 => format!("{}{}", seconds / large.0, large.1),
        rest => format!("{}{}{rest}{}", seconds / large.0, large.1, small.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_exactly_and_as_an_age() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        for (at, told) in [
            ("2026-03-01T11:59:18Z", "2026-03-01T11:59:18Z (42s ago)"),
            ("2026-03-01T11:00:01Z", "2026-03-01T11:00:01Z (59m59s ago)"),
            ("2026-02-27T12:00:00Z", "2026-02-27T12:00:00Z (2d ago)"),
            ("2026-02-27T09:30:00Z", "2026-02-27T09:30:00Z (2d2h ago)"),
            ("2026-03-01T14:00:00Z", "2026-03-01T14:00:00Z (in 2h)"),
        ] {
            assert_eq!(moment_at(at.parse().unwrap(), now), told);
        }
    }

    #[test]
    fn tables_have_no_frames_and_no_trailing_blanks() {
        let text = table(
            &["ID", "NAME"],
            [vec![cell("1"), cell("north")], vec![cell("22"), cell("x")]],
        );
        assert_eq!(text, "ID  NAME\n1   north\n22  x");
        assert_eq!(table(&["ID"], []), "Nothing found.");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(cell("a\u{1b}[31mb\nc").content(), "a [31mb c");
    }

    #[test]
    fn long_texts_are_cut() {
        let text = "é".repeat(70);
        assert_eq!(short(Some(&text)).content().chars().count(), 60);
        assert_eq!(short(None).content(), "-");
    }
}
