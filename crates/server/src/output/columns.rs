//! What there is to see of a thing, said once as data: the names of its columns, where each of them is shown, and what stands
//! in it. The table of a list and the details of one thing both come from there.

use std::collections::HashMap;

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
    /// In a table the name of the workflow, in details its id.
    Workflow(fn(&T) -> Uuid),
}

/// The names of workflows, by their ids.
pub(crate) type Names = HashMap<Uuid, String>;

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

/// A workflow.
pub(crate) const fn workflow<T>(name: &'static str, value: fn(&T) -> Uuid) -> Column<T> {
    new(name, Value::Workflow(value))
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
    /// The workflow that a table would name here.
    pub(crate) fn workflow_of(&self, thing: &T) -> Option<Uuid> {
        match self.value {
            Value::Workflow(value) => Some(value(thing)),
            _ => None,
        }
    }

    fn in_row(&self, thing: &T, names: &Names) -> Cell {
        match self.value {
            Value::Cell(value) => value(thing),
            Value::Time(value) => maybe(value(thing).map(age)),
            Value::Long(value) => short(value(thing)),
            Value::Workflow(value) => maybe(names.get(&value(thing))),
        }
    }

    fn alone(&self, thing: &T) -> Cell {
        match self.value {
            Value::Cell(value) => value(thing),
            Value::Time(value) => maybe(value(thing).map(moment)),
            Value::Long(value) => maybe(value(thing)),
            Value::Workflow(value) => cell(value(thing)),
        }
    }
}

fn columns<T: Described>(but: Place) -> impl Iterator<Item = &'static Column<T>> {
    T::COLUMNS.iter().filter(move |column| column.place != but)
}

/// Things as a table; for those that name no workflows.
pub(crate) fn rows<T: Described>(things: &[T]) -> String {
    named_rows(things, &Names::new())
}

/// Things as a table.
pub(crate) fn named_rows<T: Described>(things: &[T], names: &Names) -> String {
    let header: Vec<&str> = columns::<T>(Place::Details).map(|column| column.name).collect();
    let row = |thing: &T| {
        columns::<T>(Place::Details)
            .map(|column| column.in_row(thing, names))
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
