//! What the queue and the executions share when people look at them: filters, pages, histories, names.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::Result;
use clap::Args;
use comfy_table::Cell;
use serde_json::value::RawValue;
use stationmaster_client::wire::Step;
use stationmaster_client::{Client, Error};
use uuid::Uuid;

use super::arguments::{id, text};
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
    pub(super) limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE")]
    pub(super) before: Option<String>,
}

/// The names of the workflows on a page. A page names few of them, so they are asked for one by one.
pub(super) async fn names(
    client: &Client,
    workflows: impl Iterator<Item = Uuid>,
    format: Format,
) -> Result<HashMap<Uuid, String>> {
    let mut names = HashMap::new();
    if format == Format::Json {
        return Ok(names);
    }
    for id in workflows {
        if let Entry::Vacant(place) = names.entry(id) {
            let name = match client.workflow(id).await {
                Ok(workflow) => workflow.name,
                Err(Error::NotFound(_)) => "(deleted)".to_owned(),
                Err(error) => return Err(error.into()),
            };
            place.insert(name);
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
