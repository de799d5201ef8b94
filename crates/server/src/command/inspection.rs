//! What the queue and the executions share when people look at them: filters, histories, JSON.

use clap::Args;
use comfy_table::Cell;
use serde_json::value::RawValue;
use stationmaster_client::wire::{Reference, Step};

use super::arguments::text;
use super::names::reference;
use super::pages::Newest;
use crate::output::{Column, Described, cell, column, long, maybe, rows, time};

/// Which rows, and how many.
#[derive(Debug, Args)]
pub(super) struct Page {
    /// Only of this workspace; several with commas, or repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = reference)]
    pub(super) workspace: Vec<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    pub(super) workflow: Option<Reference>,
    /// Only with this text in the input or in the error, in whatever case
    #[arg(long, value_name = "TEXT", value_parser = text)]
    pub(super) search: Option<String>,
    #[command(flatten)]
    pub(super) part: Newest,
}

impl Described for Step {
    const COLUMNS: &'static [Column<Self>] = &[
        time("AT", |step| Some(step.at)),
        column("EVENT", |step| cell(&step.event)),
        column("BY", |step| cell(by(step.server.as_deref(), &step.actor))),
        long("DETAIL", |step| step.detail.as_deref()),
    ];
}

/// Who did it: a server by its name, anybody else as on record.
pub(super) fn by(server: Option<&str>, actor: &str) -> String {
    server.map_or_else(|| actor.to_owned(), |name| format!("server {name}"))
}

/// A life, step by step.
pub(super) fn history(steps: &[Step]) -> String {
    rows(steps)
}

/// A cell with JSON that may not be there.
pub(super) fn json_cell(json: Option<&RawValue>) -> Cell {
    maybe(json.map(RawValue::get))
}
