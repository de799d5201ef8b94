//! One item: why it waits, who is in its way, and its history.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    ExpectedStart, ItemStatus, Noun, Obstacle, QueueItem, QueueQuery, Reference, SlotHolder, Step, Waiting,
};
use uuid::Uuid;

use super::super::Context;
use super::super::inspection::history;
use super::super::names::{self, reference};
use crate::failure::{Kind, Refusal};
use crate::output::{age, cell, details, fields, moment};

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
    /// Everything that stands in its way.
    reasons: Vec<Waiting>,
    position: Option<i64>,
    holders: Vec<SlotHolder>,
    /// When it is expected to start; null where that cannot be told.
    expected: Option<ExpectedStart>,
    /// What keeps its run from going on; null when nothing does that is known.
    obstacle: Option<Obstacle>,
    history: Vec<Step>,
}

pub(super) async fn run(id: Uuid, client: &Client, context: &Context) -> Result<()> {
    let details = client.queue_item(id).await?;
    let shown = Shown {
        item: details.item,
        waiting: details.waiting,
        reasons: details.reasons,
        position: details.position,
        holders: details.holders,
        expected: details.expected,
        obstacle: details.obstacle,
        history: client.queue_history(id).await?.items,
    };
    context.print(&shown, for_people)
}

fn for_people(shown: &Shown) -> String {
    let mut rows = details(&shown.item);
    // Below the status.
    let why = why(shown).into_iter();
    rows.splice(2..2, why.map(|(name, words)| (name, cell(words))));
    if let Some(obstacle) = &shown.obstacle {
        rows.insert(2, ("OBSTACLE", cell(obstacle)));
    }
    format!("{}\n\n{}", fields(rows), history(&shown.history))
}

/// What stands in its way, its place, who is before it, and until when.
fn why(shown: &Shown) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    for waiting in &shown.reasons {
        let word = if rows.is_empty() { "WAITS" } else { "ALSO" };
        rows.push((word, reason(waiting, &shown.item)));
    }
    rows.extend(shown.position.map(|place| ("POSITION", position(place))));
    for holder in &shown.holders {
        let word = if holder == &shown.holders[0] {
            "SLOTS HELD BY"
        } else {
            ""
        };
        rows.push((word, told(holder)));
    }
    if let Some(expected) = &shown.expected {
        let words = format!("about {} ({})", moment(expected.at), expected.how);
        rows.push(("STARTS", words));
    }
    rows
}

/// Who has a slot, and since when.
fn told(holder: &SlotHolder) -> String {
    let workflow = name(holder.workflow.as_ref(), holder.workflow_definition_id);
    let server = name(holder.server.as_ref(), holder.server_id);
    let age = age(holder.since);
    format!(
        "execution {} of {workflow} for {age}, on {server}",
        holder.execution_id
    )
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
        Waiting::Limit { limit, active, .. } => full(*limit, *active),
        Waiting::Queued { position: 1 } => "nothing is in its way: it is about to be claimed".to_owned(),
        Waiting::Queued { position: 2 } => "1 other of its workspace goes first".to_owned(),
        Waiting::Queued { position } if *position > 10_000 => {
            "more than 10000 others of its workspace go first".to_owned()
        }
        Waiting::Queued { position } => format!("{} others of its workspace go first", position - 1),
    }
}

/// A limit may have been lowered below what runs.
fn full(limit: i32, active: i32) -> String {
    match (limit, active) {
        (0, 0) => "the workspace's limit is 0: nothing starts until it is raised".to_owned(),
        (0, _) => {
            format!(
                "the workspace's limit is 0: nothing starts until it is raised; {active} that began before still runs"
            )
        }
        _ if active > limit => format!(
            "the workspace is over its limit of {limit}, which was lowered while {active} ran: {} must end first",
            active - limit + 1
        ),
        _ => format!("the workspace is at its limit: {active} of {limit} slots are in use"),
    }
}

/// As a command takes it.
fn name(name: Option<&String>, id: Uuid) -> String {
    name.map_or_else(|| id.to_string(), String::clone)
}

fn position(place: i64) -> String {
    // The core stops counting there.
    if place > 10_000 {
        "after 10000 others".to_owned()
    } else {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_far_behind_is_not_told_more_exactly_than_it_is_known() {
        assert_eq!(position(3), "3");
        assert_eq!(position(10_001), "after 10000 others");
    }

    #[test]
    fn a_limit_is_told_as_people_count() {
        assert_eq!(
            full(5, 5),
            "the workspace is at its limit: 5 of 5 slots are in use"
        );
        assert_eq!(
            full(0, 0),
            "the workspace's limit is 0: nothing starts until it is raised"
        );
        assert_eq!(
            full(1, 3),
            "the workspace is over its limit of 1, which was lowered while 3 ran: 3 must end first"
        );
        assert_eq!(
            full(0, 1),
            "the workspace's limit is 0: nothing starts until it is raised; 1 that began before still runs"
        );
    }
}
