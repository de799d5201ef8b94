//! The page of the schema, drawn from the comments of a database that has been migrated.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use stationmaster_core::db::Database;
use stationmaster_core::schema::describe::{Description, Relation, describe};

const HEAD: &str = "\
# Schema

<!-- Generated: cargo run -p stationmaster -- docs schema --database-url postgres://… > docs/schema.md -->

What lies in the database, as the database says it (`comment on`). Other programs use the schema `stationmaster`: its relations and
functions are kept. `stationmaster_internal` is ours and may change with every release; it is here for whoever operates or works on Stationmaster.
The lock table lies outside both ([Locks](guides/locks.md)).
";

/// In the order in which work passes through them.
const ROOMS: [&str; 9] = [
    "catalogue",
    "executions",
    "alarms",
    "signals",
    "failures",
    "operations",
    "locks",
    "access",
    "servers",
];

/// The page, as this database draws it.
pub(super) async fn page(database: &Database) -> Result<String> {
    let Description { relations, functions } = describe(database).await?;
    if let Some(lost) = relations
        .iter()
        .find(|relation| !ROOMS.contains(&relation.room.as_str()))
    {
        bail!(
            "{} is in the room {:?}, which has no place on the page",
            lost.name,
            lost.room
        );
    }
    let mut page = HEAD.to_owned();
    for (public, title) in [
        (true, "Public: `stationmaster`"),
        (false, "Internal: `stationmaster_internal`"),
    ] {
        let _ = write!(page, "\n## {title}\n");
        for room in ROOMS {
            let here = relations
                .iter()
                .filter(|relation| relation.public == public && relation.room == room);
            for (place, relation) in here.enumerate() {
                if place == 0 {
                    let _ = write!(
                        page,
                        "\n### {}: {room}\n",
                        if public { "Public" } else { "Internal" }
                    );
                }
                draw(&mut page, relation);
            }
        }
        if public {
            page.push_str("\n### Functions\n\n| function | what it does |\n|---|---|\n");
            for function in &functions {
                let _ = writeln!(
                    page,
                    "| `{}({})` → `{}` | {}. |",
                    function.name,
                    cell(&function.arguments),
                    function.answer,
                    prose(&function.comment)
                );
            }
        }
    }
    Ok(page)
}

fn draw(page: &mut String, relation: &Relation) {
    let kind = if relation.view { "view" } else { "table" };
    let _ = write!(
        page,
        "\n#### `{}` ({kind})\n\n{} Written by: {}.\n",
        relation.name,
        prose(&relation.comment),
        relation.writers
    );
    page.push_str("\n| column | type | meaning |\n|---|---|---|\n");
    for column in &relation.columns {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            column.name,
            column.kind,
            prose(&column.comment)
        );
    }
    if relation.indexes.is_empty() {
        return;
    }
    page.push_str("\n| index | on | for |\n|---|---|---|\n");
    for index in &relation.indexes {
        let _ = writeln!(
            page,
            "| `{}` | `{}` | {} |",
            index.name,
            cell(&index.definition),
            prose(&index.comment)
        );
    }
}

/// Words outside of code: a placeholder is no tag.
fn prose(text: &str) -> String {
    cell(text).replace('<', "&lt;")
}

/// A cell of a table holds no line and no bar.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
