//! What there is to see of a thing, said once as data: the names of its columns, where each of them is shown, and what stands
//! in it. The table of a list and the details of one thing both come from there.
//!
//! A table that is wider than the terminal is made to fit: texts that may be long are cut first; then columns are left out, those
//! in which nothing stands, then the minor ones, then the others, each from the right, texts after all others. The first two
//! stay. A pipe and `-o wide` get everything.

use std::cmp::Ordering;

use comfy_table::Cell;
use jiff::Timestamp;
use uuid::Uuid;

use super::{GAP, Looks, ago, cell, cut, looks, maybe, moment, table, width};
use crate::failure::Refusal;

/// A thing that people look at.
pub(crate) trait Described: Sized + 'static {
    /// What there is to see of it, in order.
    const COLUMNS: &'static [Column<Self>];
    /// What is said when there is none.
    const NOTHING: &'static str = "Nothing found.";
}

/// One thing to see.
pub(crate) struct Column<T: 'static> {
    name: &'static str,
    place: Place,
    minor: bool,
    value: Value<T>,
}

/// Where a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Everywhere,
    Table,
    /// In details, and in tables that show everything.
    Wide,
    Details,
}

/// What stands in a column. A table has less room than details have.
enum Value<T: 'static> {
    Cell(fn(&T) -> Cell),
    /// In a table how long ago, in details the exact time as well.
    Time(fn(&T) -> Option<Timestamp>),
    /// In a table as much of it as there is room for.
    Long(fn(&T) -> Option<&str>),
    /// The same, of a text that must be put together.
    Told(fn(&T) -> Option<String>),
    /// On a terminal as much of it as tells it from the others; else the whole.
    Id(fn(&T) -> Uuid),
    /// In a table the name, in details the id as well. Without a name it is not there any more.
    Named(fn(&T) -> (Option<&str>, Uuid)),
}

/// The least that is shown of an id: the instant at which it was made, to the millisecond.
const SHORTEST_ID: usize = 13;
/// A text is not cut to less than this while there are columns that can be left out.
const SHORTEST_TEXT: usize = 24;
/// Columns that are never left out: what it is called, and how it is.
const KEPT: usize = 2;

const fn new<T>(name: &'static str, value: Value<T>) -> Column<T> {
    Column {
        name,
        place: Place::Everywhere,
        minor: false,
        value,
    }
}

/// A column that looks the same everywhere.
pub(crate) const fn column<T>(name: &'static str, value: fn(&T) -> Cell) -> Column<T> {
    new(name, Value::Cell(value))
}

/// A time that may not be there.
pub(crate) const fn time<T>(name: &'static str, value: fn(&T) -> Option<Timestamp>) -> Column<T> {
    new(name, Value::Time(value))
}

/// A text that may be long, and may not be there.
pub(crate) const fn long<T>(name: &'static str, value: fn(&T) -> Option<&str>) -> Column<T> {
    new(name, Value::Long(value))
}

/// A text that must be put together, may be long, and may not be there.
pub(crate) const fn told<T>(name: &'static str, value: fn(&T) -> Option<String>) -> Column<T> {
    new(name, Value::Told(value))
}

/// Its id.
pub(crate) const fn id<T>(name: &'static str, value: fn(&T) -> Uuid) -> Column<T> {
    new(name, Value::Id(value))
}

/// Another thing, that has a name.
pub(crate) const fn named<T>(name: &'static str, value: fn(&T) -> (Option<&str>, Uuid)) -> Column<T> {
    new(name, Value::Named(value))
}

/// The same, in tables only.
pub(crate) const fn in_table<T>(mut column: Column<T>) -> Column<T> {
    column.place = Place::Table;
    column
}

/// The same, in details and with `-o wide` only.
pub(crate) const fn in_wide<T>(mut column: Column<T>) -> Column<T> {
    column.place = Place::Wide;
    column
}

/// The same, in details only.
pub(crate) const fn in_details<T>(mut column: Column<T>) -> Column<T> {
    column.place = Place::Details;
    column
}

/// The same, and among the first to be left out where there is no room for all.
pub(crate) const fn minor<T>(mut column: Column<T>) -> Column<T> {
    column.minor = true;
    column
}

impl<T> Column<T> {
    fn is_in_tables(&self, looks: Looks) -> bool {
        match self.place {
            Place::Everywhere | Place::Table => true,
            Place::Wide => looks.wide,
            Place::Details => false,
        }
    }

    fn is_text(&self) -> bool {
        matches!(self.value, Value::Long(_) | Value::Told(_))
    }

    /// How many characters of the ids in this column tell them apart.
    fn characters(&self, things: &[T], looks: Looks) -> usize {
        let (Value::Id(value), false, Some(_)) = (&self.value, looks.wide, looks.room) else {
            return usize::MAX;
        };
        let mut ids: Vec<String> = things.iter().map(|thing| value(thing).to_string()).collect();
        ids.sort_unstable();
        ids.dedup();
        let common = |pair: &[String]| {
            let same = pair[0].bytes().zip(pair[1].bytes());
            same.take_while(|(one, other)| one == other).count() + 1
        };
        ids.windows(2)
            .map(common)
            .max()
            .unwrap_or_default()
            .max(SHORTEST_ID)
    }

    fn in_row(&self, thing: &T, characters: usize) -> Cell {
        match self.value {
            Value::Cell(value) => value(thing),
            Value::Time(value) => maybe(value(thing).map(ago)),
            Value::Long(value) => maybe(value(thing)),
            Value::Told(value) => maybe(value(thing)),
            Value::Id(value) => cell(
                value(thing)
                    .to_string()
                    .chars()
                    .take(characters)
                    .collect::<String>(),
            ),
            Value::Named(value) => cell(value(thing).0.unwrap_or("(deleted)")),
        }
    }

    fn alone(&self, thing: &T) -> Cell {
        match self.value {
            Value::Cell(value) => value(thing),
            Value::Time(value) => maybe(value(thing).map(moment)),
            Value::Long(value) => maybe(value(thing)),
            Value::Told(value) => maybe(value(thing)),
            Value::Id(value) => cell(value(thing)),
            Value::Named(value) => match value(thing) {
                (Some(name), id) => cell(format!("{name} ({id})")),
                (None, id) => cell(format!("(deleted) ({id})")),
            },
        }
    }

    /// What it is sorted by.
    fn key(&self, thing: &T) -> Key {
        if let Value::Time(value) = self.value {
            return value(thing).map_or(Key::Absent, Key::Time);
        }
        let text = self.in_row(thing, usize::MAX).content();
        match (text.as_str(), text.parse()) {
            ("-" | "", _) => Key::Absent,
            (_, Ok(number)) => Key::Number(number),
            _ => Key::Text(text.to_lowercase()),
        }
    }

    /// As it is typed.
    fn spelling(&self) -> String {
        spelled(self.name)
    }
}

fn spelled(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '_'], "-")
}

/// What stands in a column, to be compared.
#[derive(Debug, PartialEq)]
enum Key {
    Number(f64),
    Time(Timestamp),
    Text(String),
    Absent,
}

impl Key {
    /// In order, or the other way round; what is not there comes last either way.
    fn compare(&self, other: &Self, backwards: bool) -> Ordering {
        let order = match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            (Self::Time(one), Self::Time(other)) => one.cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            _ => return self.kind().cmp(&other.kind()),
        };
        if backwards { order.reverse() } else { order }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Time(_) => 1,
            Self::Text(_) => 2,
            Self::Absent => 3,
        }
    }
}

/// Puts things in the order of a column, `-` before it for the other way round. Without things: is there such a column?
pub(crate) fn sort<T: Described>(things: &mut [T], by: &str) -> Result<(), Refusal> {
    let (name, backwards) = by.strip_prefix('-').map_or((by, false), |name| (name, true));
    let shown = || T::COLUMNS.iter().filter(|column| column.place != Place::Details);
    let Some(column) = shown().find(|column| column.spelling() == spelled(name)) else {
        let names: Vec<String> = shown().map(Column::spelling).collect();
        let message = format!("there is no column {} to sort by", super::printable(name));
        let advice = format!(
            "Choose one of {}; with - before it the last come first",
            names.join(", ")
        );
        return Err(Refusal::usage(message, advice));
    };
    things.sort_by(|one, other| column.key(one).compare(&column.key(other), backwards));
    Ok(())
}

/// A column of a table, ready to be printed.
struct Laid {
    name: &'static str,
    minor: bool,
    text: bool,
    cells: Vec<Cell>,
    width: usize,
}

impl Laid {
    fn is_empty(&self) -> bool {
        self.cells
            .iter()
            .all(|cell| ["-", ""].contains(&cell.content().as_str()))
    }

    /// The least that it needs.
    fn least(&self) -> usize {
        if self.text {
            self.width.min(SHORTEST_TEXT)
        } else {
            self.width
        }
    }

    /// When it goes: the lowest first.
    fn worth(&self) -> u8 {
        match self {
            laid if laid.is_empty() => 0,
            Self { minor: true, .. } => 1,
            Self { text: false, .. } => 2,
            _ => 3,
        }
    }
}

/// Things as a table.
pub(crate) fn rows<T: Described>(things: &[T]) -> String {
    rows_fitted(things).0
}

/// Things as a table, and the columns that were left out of it.
pub(crate) fn rows_fitted<T: Described>(things: &[T]) -> (String, Vec<&'static str>) {
    rows_in(things, looks())
}

pub(super) fn rows_in<T: Described>(things: &[T], looks: Looks) -> (String, Vec<&'static str>) {
    if things.is_empty() {
        return (T::NOTHING.to_owned(), Vec::new());
    }
    let lay = |column: &'static Column<T>| {
        let characters = column.characters(things, looks);
        let cells = things.iter().map(|thing| column.in_row(thing, characters));
        let cells: Vec<Cell> = cells.collect();
        let widest = cells.iter().map(|cell| width(&cell.content())).max();
        Laid {
            name: column.name,
            minor: column.minor,
            text: column.is_text(),
            cells,
            width: widest.unwrap_or_default().max(column.name.len()),
        }
    };
    let columns = T::COLUMNS.iter().filter(|column| column.is_in_tables(looks));
    let mut columns: Vec<Laid> = columns.map(lay).collect();
    let left_out = match looks.room.filter(|_| !looks.wide) {
        Some(room) => fit(&mut columns, room),
        None => Vec::new(),
    };
    let header: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let rows = (0..things.len()).map(|row| columns.iter().map(|column| column.cells[row].clone()).collect());
    (table(&header, rows), left_out)
}

/// Makes columns fit. Answers which were left out, from the left.
fn fit(columns: &mut Vec<Laid>, room: usize) -> Vec<&'static str> {
    let needed = |columns: &[Laid], each: fn(&Laid) -> usize| {
        let gaps = GAP * columns.len().saturating_sub(1);
        columns.iter().map(each).sum::<usize>() + gaps
    };
    let mut left_out = Vec::new();
    while needed(columns, Laid::least) > room {
        let candidates = columns.iter().enumerate().skip(KEPT);
        // Of those that are worth the same the rightmost.
        let Some((at, _)) = candidates.min_by_key(|(at, column)| (column.worth(), usize::MAX - at)) else {
            break;
        };
        left_out.insert(0, columns.remove(at).name);
    }
    let mut spare = room.saturating_sub(needed(columns, Laid::least));
    for column in columns.iter_mut().filter(|column| column.text) {
        let allowed = column.width.min(column.least() + spare);
        spare -= allowed - column.least();
        if allowed < column.width {
            for cell in &mut column.cells {
                *cell = Cell::new(cut(&cell.content(), allowed));
            }
        }
    }
    left_out
}

/// One thing, to be shown by `fields`.
pub(crate) fn details<T: Described>(thing: &T) -> Vec<(&'static str, Cell)> {
    T::COLUMNS
        .iter()
        .filter(|column| column.place != Place::Table)
        .map(|column| (column.name, column.alone(thing)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Times, fields};
    use super::*;

    struct Train {
        name: &'static str,
        track: u8,
        late: Option<Timestamp>,
        why: &'static str,
    }

    impl Described for Train {
        const COLUMNS: &'static [Column<Self>] = &[
            column("NAME", |train| cell(train.name)),
            in_details(column("TRACK", |train| cell(train.track))),
            in_table(column("STANDS AT", |train| {
                cell(format!("track {}", train.track))
            })),
            column("NUMBER", |train| cell(train.track)),
            time("LEFT", |train| train.late),
            minor(column("WAGONS", |_| cell("eleven"))),
            long("WHY LATE", |train| Some(train.why)),
            in_wide(column("DRIVER", |_| cell("Ada"))),
        ];
        const NOTHING: &'static str = "No train.";
    }

    const WHY: &str = "leaves on the track, and signals that were red for longer than anybody remembers";

    fn trains() -> Vec<Train> {
        let train = |name, track, late: Option<&str>, why| Train {
            name,
            track,
            late: late.map(|at| at.parse().unwrap()),
            why,
        };
        vec![
            train("north", 9, None, WHY),
            train("South", 10, Some("2026-03-01T11:00:00Z"), "-"),
            train("east", 1, Some("2026-03-01T10:00:00Z"), "snow"),
        ]
    }

    fn seen(room: Option<usize>, wide: bool) -> (String, Vec<&'static str>) {
        let times = Times::Utc;
        rows_in(&trains(), Looks { wide, room, times })
    }

    #[test]
    fn a_table_and_details_show_the_columns_that_are_theirs() {
        let train = trains().remove(0);
        let alone = fields(details(&train));
        assert!(
            alone.contains("TRACK     9\n") && alone.contains("DRIVER    Ada"),
            "{alone}"
        );
        assert!(!alone.contains("STANDS AT"), "{alone}");
        let (table, left_out) = seen(None, false);
        let header = table.lines().next().unwrap();
        assert_eq!(
            header.split("  ").filter(|name| !name.is_empty()).count(),
            6,
            "{header}"
        );
        assert!(table.contains(WHY) && !table.contains("DRIVER") && left_out.is_empty());
        assert!(table.contains("2026-03-01T11:00:00Z"), "{table}");
        assert!(seen(None, true).0.contains("DRIVER"));
        assert_eq!(rows::<Train>(&[]), "No train.");
    }

    #[test]
    fn a_table_that_is_too_wide_is_cut_first_and_then_loses_columns_in_the_stated_order() {
        let expected: [(usize, &[&str], bool); 5] = [
            (200, &[], true),
            (100, &[], false),
            (75, &["WAGONS"], false),
            (60, &["LEFT", "WAGONS"], false),
            (45, &["NUMBER", "LEFT", "WAGONS"], false),
        ];
        for (room, gone, whole) in expected {
            let (table, left_out) = seen(Some(room), false);
            assert_eq!(left_out, gone, "{room}\n{table}");
            assert_eq!(table.contains(WHY), whole, "{room}\n{table}");
            assert!(table.lines().all(|line| width(line) <= room), "{room}\n{table}");
            assert_eq!(table.lines().count(), 4, "{table}");
            let cut_short = table.contains("leaves on the track");
            assert!(cut_short && (whole || table.contains('…')), "{room}\n{table}");
        }
        let (least, left_out) = seen(Some(10), false);
        assert_eq!(left_out.len(), 4);
        assert!(least.starts_with("NAME   STANDS AT\n"), "{least}");
        assert_eq!(
            seen(Some(45), true).0,
            seen(None, true).0,
            "asked for wide, it is wide"
        );
    }

    #[test]
    fn columns_are_sorted_by_what_they_mean() {
        let order = |by: &str| {
            let mut trains = trains();
            sort(&mut trains, by).map(|()| trains.iter().map(|train| train.name).collect::<Vec<_>>())
        };
        assert_eq!(
            order("number").unwrap(),
            ["east", "north", "South"],
            "numbers as numbers"
        );
        assert_eq!(order("-Number").unwrap(), ["South", "north", "east"]);
        assert_eq!(
            order("name").unwrap(),
            ["east", "north", "South"],
            "in whatever case"
        );
        assert_eq!(
            order("left").unwrap(),
            ["east", "South", "north"],
            "what is not there is last"
        );
        assert_eq!(order("-left").unwrap(), ["South", "east", "north"]);
        assert_eq!(order("stands-at").unwrap(), order("STANDS AT").unwrap());
        let refused = order("colour").unwrap_err().to_string();
        assert!(refused.contains("no column colour"), "{refused}");
    }
}
