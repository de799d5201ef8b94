//! What the queue and the executions share when people look at them: filters, pages, histories, names.

use std::collections::HashMap;

use anyhow::Result;
use clap::Args;
use comfy_table::Cell;
use serde_json::value::RawValue;
use stationmaster_core::catalogue;
use stationmaster_core::db::Database;
use stationmaster_core::executions::inspect::{Filter, Step};
use stationmaster_core::id::{DefinitionId, WorkspaceId};
use uuid::Uuid;

use super::arguments::{id, is_full};
use crate::output::{Format, cell, maybe, moment, table};

/// Which rows, and how many.
#[derive(Debug, Args)]
pub(super) struct Page {
    /// Only of this workspace
    #[arg(long, value_name = "ID", value_parser = id::<WorkspaceId>)]
    workspace: Option<WorkspaceId>,
    /// Only of this workflow
    #[arg(long, value_name = "ID", value_parser = id::<DefinitionId>)]
    workflow: Option<DefinitionId>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: i64,
    /// Only those older than this one: where the last page ended
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    before: Option<Uuid>,
}

impl Page {
    pub(super) fn filter(&self, status: Option<&'static str>) -> Filter {
        Filter {
            workspace: self.workspace,
            definition: self.workflow,
            status: status.map(str::to_owned),
            before: self.before,
            limit: self.limit,
        }
    }

    /// Says how to read on when the page is full.
    pub(super) fn say_where_it_ends(&self, rows: usize, last: Option<Uuid>, format: Format) {
        if let Some(last) = last.filter(|_| is_full(rows, self.limit)) {
            format.hint(&format!("There may be more: --before {last}"));
        }
    }
}

/// The names of the workflows on a page. A page names few of them, so they are asked for one by one.
pub(super) async fn names(
    database: &Database,
    definitions: impl Iterator<Item = DefinitionId>,
    format: Format,
) -> Result<HashMap<DefinitionId, String>> {
    let mut names = HashMap::new();
    if format == Format::Json {
        return Ok(names);
    }
    for id in definitions {
        if names.contains_key(&id) {
            continue;
        }
        let name = match catalogue::definition(database, id).await {
            Ok(definition) => definition.name,
            Err(catalogue::Error::UnknownDefinition(_)) => "(deleted)".to_owned(),
            Err(error) => return Err(error.into()),
        };
        names.insert(id, name);
    }
    Ok(names)
}

/// A life, step by step.
pub(super) fn history(steps: &[Step]) -> String {
    let row = |step: &Step| {
        vec![
            cell(moment(step.at)),
            cell(&step.event),
            cell(&step.actor),
            maybe(step.detail.as_ref()),
        ]
    };
    table(&["AT", "EVENT", "BY", "DETAIL"], steps.iter().map(row))
}

/// A cell with JSON that may not be there.
pub(super) fn json_cell(json: Option<&RawValue>) -> Cell {
    maybe(json.map(RawValue::get))
}
