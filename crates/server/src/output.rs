//! What a command prints: JSON for machines, tables and sentences for people. Results go to stdout, everything else to
//! stderr. Text from the database may hold anything, so control characters never reach a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use anstream::{AutoStream, ColorChoice};
use comfy_table::{Cell, Color, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

mod columns;
mod looks;
mod times;

pub(crate) use columns::{
    Column, Described, column, details, id, in_details, in_table, in_wide, long, minor, named, rows,
    rows_fitted, sort, time, told,
};
pub(crate) use looks::{Looks, Times, looks};
pub(crate) use times::{age, ago, moment};

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

    /// The same where nobody knows how much it is: a bar that is full and goes on would mislead.
    pub(crate) fn progress_uncounted(self, what: &'static str) -> ProgressBar {
        if self == Self::Json || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let template = "{msg} {spinner} {human_pos} so far, for {elapsed}";
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
        ProgressBar::no_length().with_style(style).with_message(what)
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

/// Rows under a header.
fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut table = plain();
    table.set_header(header.iter().map(Cell::new)).add_rows(rows);
    laid_out(table)
}

/// The fields of one thing, one a line; on a terminal a long one goes on below itself.
pub(crate) fn fields(fields: impl IntoIterator<Item = (&'static str, Cell)>) -> String {
    fields_in(fields.into_iter().collect(), looks().room)
}

/// The same without colours, in a room of this width: for a part of the screen that somebody else draws.
pub(crate) fn fields_within(fields: Vec<(&'static str, Cell)>, room: usize) -> String {
    bare(&fields_in(fields, Some(room)))
}

/// Things as a table, likewise.
pub(crate) fn rows_within<T: Described>(things: &[T], room: usize) -> String {
    let looks = Looks {
        room: Some(room),
        wide: false,
        ..looks()
    };
    bare(&columns::rows_in(things, looks).0)
}

fn bare(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn fields_in(fields: Vec<(&'static str, Cell)>, room: Option<usize>) -> String {
    let names = fields
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    let room = room.and_then(|room| room.checked_sub(names + GAP));
    let mut table = plain();
    for (name, value) in fields {
        let content = value.content();
        match room.filter(|room| *room >= SHORTEST_LINE && width(&content) > *room) {
            // What has a colour is a word, and fits.
            Some(room) => table.add_row(vec![Cell::new(name), Cell::new(lines(&content, room).join("\n"))]),
            None => table.add_row(vec![Cell::new(name), value]),
        };
    }
    laid_out(table)
}

/// A text behind its head, going on below itself.
pub(crate) fn hanging(head: &str, text: &str, room: usize) -> String {
    let indent = width(head);
    let lines = lines(text, room.saturating_sub(indent).max(SHORTEST_LINE));
    format!("{head}{}", lines.join(&format!("\n{}", " ".repeat(indent))))
}

/// Blanks between two columns.
const GAP: usize = 2;
/// Where there is less room than this, nothing looks good.
const SHORTEST_LINE: usize = 20;

/// Columns of a terminal that a text takes.
fn width(text: &str) -> usize {
    ratatui::text::Span::raw(text).width()
}

/// As much of a text as fits, with a sign that there is more.
fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        if width(&short) + width(character.encode_utf8(&mut [0; 4])) + 1 > room {
            break;
        }
        short.push(character);
    }
    short.push('…');
    short
}

/// A text broken between words, or within one that is too long.
fn lines(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && width(line) + 1 + width(word) > room {
            lines.push(String::new());
        } else if !line.is_empty() {
            line.push(' ');
        }
        for character in word.chars() {
            let line = lines.last_mut().expect("there is one");
            if width(line) + width(character.encode_utf8(&mut [0; 4])) > room {
                lines.push(String::from(character));
            } else {
                line.push(character);
            }
        }
    }
    lines
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
    let text = table.trim_fmt();
    text.lines().map(bare_blanks).collect::<Vec<_>>().join("\n")
}

/// Ends a colour.
const PLAIN: &str = "\u{1b}[39m";

/// A coloured cell is filled up within its colour: the blanks go behind it, and none stay at the end of the line.
fn bare_blanks(line: &str) -> String {
    let Some((coloured, rest)) = line.rsplit_once(PLAIN) else {
        return line.trim_end().to_owned();
    };
    let mut bare = String::new();
    for part in coloured.split(PLAIN) {
        let word = part.trim_end_matches(' ');
        bare.push_str(word);
        bare.push_str(PLAIN);
        bare.push_str(&part[word.len()..]);
    }
    bare.push_str(rest);
    bare.trim_end().to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_no_frames_and_no_trailing_blanks() {
        let text = table(
            &["ID", "NAME"],
            [vec![cell("1"), cell("north")], vec![cell("22"), cell("x")]],
        );
        assert_eq!(text, "ID  NAME\n1   north\n22  x");
    }

    #[test]
    fn a_coloured_cell_has_no_blanks_within_its_colour_and_none_at_the_end() {
        let mut coloured = plain();
        coloured.enforce_styling();
        coloured.set_header(["STATUS", "NAME", "LAST"]);
        for (word, last) in [("RUNNING", "FAILED"), ("COMPLETED", "ok")] {
            coloured.add_row([status(word), cell("north"), status(last)]);
        }
        let text = laid_out(coloured);
        assert!(text.contains(&format!("RUNNING{PLAIN}    north")), "{text:?}");
        assert_eq!(text.matches(PLAIN).count(), 4, "{text:?}");
        assert!(!text.contains(&format!(" {PLAIN}")), "{text:?}");
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text:?}");
    }

    #[test]
    fn what_is_drawn_by_somebody_else_has_no_colours() {
        assert_eq!(bare("RUNNING"), "RUNNING");
        assert_eq!(bare(&format!("\u{1b}[38;5;10mRUNNING{PLAIN}  x")), "RUNNING  x");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(cell("a\u{1b}[31mb\nc").content(), "a [31mb c");
    }

    #[test]
    fn long_texts_are_cut_by_what_they_take_on_a_terminal() {
        assert_eq!(cut("északi vonat", 8), "északi …");
        assert_eq!(cut("駅長駅長駅長", 7), "駅長駅…");
        assert_eq!(cut("short", 5), "short");
    }

    #[test]
    fn a_long_field_goes_on_below_itself_on_a_terminal_alone() {
        let input = format!("{{\"words\": \"{}\"}}", "several of them ".repeat(4).trim());
        let told = |room| fields_in(vec![("ID", cell("1")), ("INPUT", cell(&input))], room);
        assert_eq!(told(None).lines().count(), 2);
        let narrow = told(Some(40));
        assert_eq!(narrow.lines().count(), 4, "{narrow}");
        assert!(narrow.lines().all(|line| width(line) <= 40), "{narrow}");
        assert!(
            narrow.lines().skip(2).all(|line| line.starts_with("       ")),
            "{narrow}"
        );
        let unbroken = fields_in(vec![("KEY", cell("x".repeat(90)))], Some(50));
        assert!(unbroken.lines().all(|line| width(line) <= 50), "{unbroken}");
    }
}
