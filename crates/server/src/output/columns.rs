//! What there is to see of a thing, said once as data: the names of its columns, where each of them is shown, and what stands
//! in it. The table of a list and the details of one thing both come from there.

use comfy_table::Cell;
use jiff::Timestamp;
use uuid::Uuid;

use super::{age, cell, maybe, moment, short, table};

/// A thing that people look at.
pub(crate) trait Described: Sized + 'static {
    /// What there is to see of it, in order.
    const COLUMNS: &'static [Column<Self>];
}

/// One thing to see.
pub(crate) struct Column<T: 'static> {
    name: &'static str,
    place: Place,
    value: Value<T>,
}

/// Where a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Everywhere,
    Table,
    Details,
}

/// What stands in a column. A table has less room than details have.
enum Value<T: 'static> {
    Cell(fn(&T) -> Cell),
    /// In a table how long ago, in details the exact time as well.
    Time(fn(&T) -> Option<Timestamp>),
    /// In a table its beginning.
    Long(fn(&T) -> Option<&str>),
    /// In a table as much of it as tells it from the others, unless there is room; in details the whole.
    Id(fn(&T) -> Uuid),
    /// In a table the name, in details the id as well. Without a name it is not there any more.
    Named(fn(&T) -> (Option<&str>, Uuid)),
}

/// How much room a table takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Usual,
    Wide,
}

/// The least that is shown of an id: the instant at which it was made, to the millisecond.
const SHORTEST_ID: usize = 13;

const fn new<T>(name: &'static str, value: Value<T>) -> Column<T> {
    Column {
        name,
        place: Place::Everywhere,
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

/// The same, in details only.
pub(crate) const fn in_details<T>(mut column: Column<T>) -> Column<T> {
    column.place = Place::Details;
    column
}

impl<T> Column<T> {
    /// How many characters of the ids in this column tell them apart.
    fn characters(&self, things: &[T], width: Width) -> usize {
        let (Value::Id(value), Width::Usual) = (&self.value, width) else {
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
            Value::Time(value) => maybe(value(thing).map(age)),
            Value::Long(value) => short(value(thing)),
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
            Value::Id(value) => cell(value(thing)),
            Value::Named(value) => match value(thing) {
                (Some(name), id) => cell(format!("{name} ({id})")),
                (None, id) => cell(format!("(deleted) ({id})")),
            },
        }
    }
}

fn columns<T: Described>(but: Place) -> impl Iterator<Item = &'static Column<T>> {
    T::COLUMNS.iter().filter(move |column| column.place != but)
}

/// Things as a table of the usual width.
pub(crate) fn rows<T: Described>(things: &[T]) -> String {
    rows_in(things, Width::Usual)
}

/// Things as a table.
pub(crate) fn rows_in<T: Described>(things: &[T], width: Width) -> String {
    let header: Vec<&str> = columns::<T>(Place::Details).map(|column| column.name).collect();
    let columns: Vec<(&Column<T>, usize)> = columns::<T>(Place::Details)
        .map(|column| (column, column.characters(things, width)))
        .collect();
    let row = |thing: &T| {
        columns
            .iter()
            .map(|(column, characters)| column.in_row(thing, *characters))
            .collect()
    };
    table(&header, things.iter().map(row))
}

/// One thing, to be shown by `fields`.
pub(crate) fn details<T: Described>(thing: &T) -> Vec<(&'static str, Cell)> {
    columns::<T>(Place::Table)
        .map(|column| (column.name, column.alone(thing)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fields;
    use super::*;

    struct Train {
        name: &'static str,
        track: u8,
    }

    impl Described for Train {
        const COLUMNS: &'static [Column<Self>] = &[
            column("NAME", |train| cell(train.name)),
            in_details(column("TRACK", |train| cell(train.track))),
            in_table(column("AT", |train| cell(format!("track {}", train.track)))),
            time("LEFT", |_| None),
        ];
    }

    #[test]
    fn a_table_and_details_show_the_columns_that_are_theirs() {
        let train = Train {
            name: "north",
            track: 9,
        };
        assert_eq!(fields(details(&train)), "NAME   north\nTRACK  9\nLEFT   -");
        let table = rows(&[train]);
        assert_eq!(table, "NAME   AT       LEFT\nnorth  track 9  -");
    }
}
