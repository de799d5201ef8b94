//! What the API would say to a change, for whoever wants to hear it before the change is sent. Knows no database: what depends on how
//! things are is told when it is done.

use serde::de::DeserializeOwned;
use serde_json::Value;
use stationmaster_client::wire::{PlanChange, Reference, WorkflowChange, WorkspaceChange};

use super::problem::Result;
use super::{plans, unread, workflows, workspaces};

/// What is wrong, in words for people.
type Complaints = Vec<String>;

/// A change as the API reads it.
pub(crate) fn read<T: DeserializeOwned>(change: &Value) -> Result<T, Complaints> {
    unread::body(change.to_string().as_bytes()).map_err(|problem| problem.complaints())
}

/// Of a plan.
pub(crate) fn plan(name: &str, change: &Value) -> Complaints {
    read(change).map_or_else(
        |wrong| wrong,
        |change: PlanChange| told(plans::check(name, &change)),
    )
}

/// Of a workspace.
pub(crate) fn workspace(change: &Value) -> Complaints {
    read(change).map_or_else(
        |wrong| wrong,
        |change: WorkspaceChange| told(workspaces::check(&change)),
    )
}

/// Of a workflow.
pub(crate) fn workflow(change: &Value) -> Complaints {
    read(change).map_or_else(
        |wrong| wrong,
        |change: WorkflowChange<Reference>| told(workflows::check(&change.with_ids(uuid::Uuid::nil()))),
    )
}

fn told(checked: Result<()>) -> Complaints {
    checked
        .err()
        .map_or_else(Vec::new, |problem| problem.complaints())
}
