//! What the queue and the executions share when people look at them: filters, pages, histories, names.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::Result;
use clap::Args;
use comfy_table::Cell;
use serde_json::value::RawValue;
use stationmaster_client::wire::Step;
use uuid::Uuid;

use super::arguments::{id, text};
use super::backend::Backend;
use crate::output::{Format, cell, maybe, moment, table};

/// Which rows, and how many.
#[derive(Debug, Args)]
pub(super) struct Page {
    /// Only of this workspace
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    pub(super) workspace: Option<Uuid>,
    /// Only of this workflow
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    pub(super) workflow: Option<Uuid>,
    /// Only with this text in the input or in the error, in whatever case
    #[arg(long, value_name = "TEXT", value_parser = text)]
    pub(super) search: Option<String>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Go on where the list before ended: what it said, or the last id that it showed
    #[arg(long, value_name = "PLACE")]
    pub(super) before: Option<String>,
}

impl Page {
    pub(super) fn limit(&self) -> usize {
        self.limit as usize
    }
}

/// Says how to read on.
pub(super) fn say_where_it_ends(next: Option<&str>, format: Format) {
    if let Some(next) = next {
        format.hint(&format!("There is more: --before {next}"));
    }
}

/// The names of the workflows on a page. A page names few of them, so they are asked for one by one.
pub(super) async fn names(
    backend: &Backend,
    workflows: impl Iterator<Item = Uuid>,
    format: Format,
) -> Result<HashMap<Uuid, String>> {
    let mut names = HashMap::new();
    if format == Format::Json {
        return Ok(names);
    }
    for id in workflows {
        if let Entry::Vacant(place) = names.entry(id) {
            let name = backend.name_of_workflow(id).await?;
            place.insert(name.unwrap_or_else(|| "(deleted)".to_owned()));
        }
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
