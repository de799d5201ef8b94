//! What the database says of itself: relations, columns, indexes and functions, each with its comment. Reads the catalogue
//! only; how it is shown is somebody else's matter.

use crate::db::{Database, Error, Read as _, statement};

/// Everything there is to tell.
#[derive(Debug)]
pub struct Description {
    /// Tables and views, the public ones first.
    pub relations: Vec<Relation>,
    /// The public functions.
    pub functions: Vec<Function>,
}

/// A table or a view.
#[derive(Debug)]
pub struct Relation {
    /// May other programs use it?
    pub public: bool,
    /// Its name, without its schema.
    pub name: String,
    /// Is it a view?
    pub view: bool,
    /// What it is.
    pub comment: String,
    /// The room that it belongs to.
    pub room: String,
    /// Who writes it.
    pub writers: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// Its indexes, the primary key first.
    pub indexes: Vec<Index>,
}

/// A column.
#[derive(Debug, sqlx::FromRow)]
pub struct Column {
    relation: String,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// What it means; empty where the name says it.
    pub comment: String,
}

/// An index.
#[derive(Debug, sqlx::FromRow)]
pub struct Index {
    relation: String,
    /// Its name.
    pub name: String,
    /// What it is on.
    pub definition: String,
    /// What it is for.
    pub comment: String,
}

/// A function.
#[derive(Debug, sqlx::FromRow)]
pub struct Function {
    /// Its name, without its schema.
    pub name: String,
    /// Its arguments with their defaults.
    pub arguments: String,
    /// What it answers.
    pub answer: String,
    /// What it does.
    pub comment: String,
}

/// Reads all of it.
pub async fn describe(database: &Database) -> Result<Description, Error> {
    let database = &database.own();
    let relations: Vec<(bool, String, bool, String)> = sqlx::query_as(statement!("schema/relations"))
        .all(database)
        .await?;
    let mut columns: Vec<Column> = sqlx::query_as(statement!("schema/columns")).all(database).await?;
    let mut indexes: Vec<Index> = sqlx::query_as(statement!("schema/indexes")).all(database).await?;
    let functions = sqlx::query_as(statement!("schema/functions"))
        .all(database)
        .await?;
    let relations = relations
        .into_iter()
        .map(|(public, name, view, text)| {
            let (comment, room, writers) = parts_of(&text);
            Relation {
                columns: columns.extract_if(.., |column| column.relation == name).collect(),
                indexes: indexes.extract_if(.., |index| index.relation == name).collect(),
                public,
                name,
                view,
                comment,
                room,
                writers,
            }
        })
        .collect();
    Ok(Description { relations, functions })
}

/// A relation's comment ends with a line that says its room and who writes it.
fn parts_of(text: &str) -> (String, String, String) {
    let (comment, last) = text.rsplit_once("\nRoom: ").unwrap_or((text, ""));
    let (room, writers) = last.split_once(". Written by: ").unwrap_or((last, ""));
    (
        comment.to_owned(),
        room.to_owned(),
        writers.trim_end_matches('.').to_owned(),
    )
}
