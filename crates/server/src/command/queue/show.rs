//! One item: why it waits, who is in its way, and its history.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    ItemStatus, Noun, Obstacle, QueueItem, QueueQuery, Reference, Step, Waiting,
};
use uuid::Uuid;

use super::super::Context;
use super::super::inspection::history;
use super::super::names::{self, reference};
use crate::failure::{Kind, Refusal};
use crate::output::{cell, details, fields, moment};

/// Which item.
#[derive(Debug, Args)]
#[group(required = true)]
pub(crate) struct ShowArgs {
    /// The item
    #[arg(value_parser = reference)]
    id: Option<Reference>,
    /// The newest item of this workspace that waits, or else its newest
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workspace: Option<Reference>,
}

impl ShowArgs {
    pub(super) async fn meant(&self, client: &Client) -> Result<Uuid> {
        if let Some(id) = &self.id {
            return names::one(client, Noun::Item, None, id).await;
        }
        let workspace = names::workspace_asked(client, self.workspace.as_ref()).await?;
        for status in [Some(ItemStatus::Pending), None] {
            let query = QueueQuery {
                workspace_id: workspace.map(Reference::from),
                status,
                limit: Some(1),
                ..QueueQuery::default()
            };
            if let Some(item) = client.queue(&query).await?.items.first() {
                return Ok(item.id);
            }
        }
        let advice = "See which there are: stationmaster queue list";
        Err(Refusal::new(Kind::NotFound, "the workspace has no item at all", advice).into())
    }
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    item: QueueItem,
    /// Why it waits; null when it does not.
    waiting: Option<Waiting>,
    /// What keeps its run from going on; null when nothing does that is known.
    obstacle: Option<Obstacle>,
    history: Vec<Step>,
}

pub(super) async fn run(id: Uuid, client: &Client, context: &Context) -> Result<()> {
    let details = client.queue_item(id).await?;
    let shown = Shown {
        item: details.item,
        waiting: details.waiting,
        obstacle: details.obstacle,
        history: client.queue_history(id).await?.items,
    };
    context.print(&shown, for_people)
}

fn for_people(shown: &Shown) -> String {
    let Shown {
        item,
        waiting,
        obstacle,
        history: steps,
    } = shown;
    let mut rows = details(item);
    if let Some(waiting) = waiting {
        let why = [
            Some(("WAITS", cell(reason(waiting, item)))),
            position(waiting).map(|position| ("POSITION", cell(position))),
            holders(waiting).map(|holders| ("SLOTS HELD BY", cell(holders))),
        ];
        // Below the status.
        rows.splice(2..2, why.into_iter().flatten());
    }
    if let Some(obstacle) = obstacle {
        rows.insert(2, ("OBSTACLE", cell(obstacle)));
    }
    format!("{}\n\n{}", fields(rows), history(steps))
}

/// Why it waits, and what could be done about it.
fn reason(waiting: &Waiting, item: &QueueItem) -> String {
    let until = |until: &Option<Timestamp>| until.map_or_else(|| "soon".to_owned(), moment);
    match waiting {
        Waiting::Scheduled { until: at } => format!("its time has not come: {}", until(at)),
        Waiting::BackingOff { until: at, error } => {
            format!(
                "backing off until {}: {}",
                until(at),
                error.as_deref().unwrap_or("the last start did not succeed")
            )
        }
        Waiting::WorkspacePaused => {
            format!(
                "its workspace is paused: stationmaster workspaces resume {}",
                name(item.workspace.as_ref(), item.workspace_id)
            )
        }
        Waiting::DefinitionPaused => {
            format!(
                "its workflow is paused: stationmaster workflows resume {}",
                match (&item.workspace, &item.workflow) {
                    (Some(workspace), Some(workflow)) => format!("{workspace}.{workflow}"),
                    _ => item.workflow_definition_id.to_string(),
                }
            )
        }
        Waiting::NoServer => "no server takes work: stationmaster serve starts one".to_owned(),
        Waiting::EngineDown => "the engine is away; servers go on as soon as it is back".to_owned(),
        Waiting::Limit { limit, active, .. } => {
            format!("the workspace is at its limit: {active} of {limit} slots are in use")
        }
        Waiting::Queued { .. } => "nothing is in its way: it is about to be claimed".to_owned(),
    }
}

/// As a command takes it.
fn name(name: Option<&String>, id: Uuid) -> String {
    name.map_or_else(|| id.to_string(), String::clone)
}

fn position(waiting: &Waiting) -> Option<String> {
    let (Waiting::Limit { position, .. } | Waiting::Queued { position }) = waiting else {
        return None;
    };
    // The core stops counting there.
    Some(if *position > 10_000 {
        "after 10000 others".to_owned()
    } else {
        position.to_string()
    })
}

fn holders(waiting: &Waiting) -> Option<String> {
    let Waiting::Limit { holders, .. } = waiting else {
        return None;
    };
    Some(
        holders
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_far_behind_is_not_told_more_exactly_than_it_is_known() {
        assert_eq!(position(&Waiting::Queued { position: 3 }).as_deref(), Some("3"));
        assert_eq!(
            position(&Waiting::Queued { position: 10_001 }).as_deref(),
            Some("after 10000 others")
        );
        assert_eq!(position(&Waiting::NoServer), None);
    }
}
