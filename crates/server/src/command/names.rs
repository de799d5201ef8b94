//! What people mean by what they type: a name, an id, or the beginning of one. Asked of the API, through a server as on a database.

use anyhow::Result;
use stationmaster_client::Client;
use stationmaster_client::wire::{NameFound, NameQuery, Noun, Reference};
use uuid::Uuid;

use crate::failure::{Kind, Refusal};
use crate::output::printable;

/// A name, an id or the beginning of one, as it is typed.
pub(super) fn reference(text: &str) -> Result<Reference, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        text => Ok(text.into()),
    }
}

/// The workspace that is meant.
pub(super) async fn workspace(client: &Client, which: &Reference) -> Result<Uuid> {
    one(client, Noun::Workspace, None, which).await
}

/// The workspace that a list is limited to. One that is not there is told: an empty list would say that it has nothing.
pub(super) async fn workspace_asked(client: &Client, which: Option<&Reference>) -> Result<Option<Uuid>> {
    match which {
        None => Ok(None),
        Some(Reference::Id(id)) => Ok(Some(client.workspace(*id).await?.id)),
        Some(name) => workspace(client, name).await.map(Some),
    }
}

/// What a list or a bulk command is limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// To this workspace.
    pub(super) workspace: Option<Uuid>,
    /// To this workflow.
    pub(super) workflow: Option<Uuid>,
}

/// Each workspace that something is limited to, with the workflow of that name in it; one place without a limit when none is named.
pub(super) async fn places(
    client: &Client,
    workspaces: &[Reference],
    workflow: Option<&Reference>,
) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    let named = workspaces.iter().map(Some);
    let none = workspaces.is_empty().then_some(None);
    for which in named.chain(none) {
        let workspace = workspace_asked(client, which).await?;
        let place = Place {
            workspace,
            workflow: workflow_asked(client, workspace, workflow).await?,
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}

/// The only workspace of these places, if there is one only.
pub(super) fn only_workspace(places: &[Place]) -> Option<Uuid> {
    match places {
        [place] => place.workspace,
        _ => None,
    }
}

/// The workflow that is meant, in this workspace or in the only one that has it.
pub(super) async fn workflow(client: &Client, within: Option<Uuid>, which: &Reference) -> Result<Uuid> {
    one(client, Noun::Workflow, within, which).await
}

/// The workflow that a list is limited to.
pub(super) async fn workflow_asked(
    client: &Client,
    within: Option<Uuid>,
    which: Option<&Reference>,
) -> Result<Option<Uuid>> {
    match which {
        None => Ok(None),
        Some(Reference::Id(id)) => Ok(Some(client.workflow(*id).await?.id)),
        Some(name) => workflow(client, within, name).await.map(Some),
    }
}

/// The one thing that is meant. An id is what it says, whether there is such a thing or not.
pub(super) async fn one(
    client: &Client,
    noun: Noun,
    within: Option<Uuid>,
    which: &Reference,
) -> Result<Uuid> {
    let text = match which {
        Reference::Id(id) => return Ok(*id),
        Reference::Name(text) => text,
    };
    let query = NameQuery {
        noun,
        text: text.clone(),
        workspace_id: within.map(Reference::from),
    };
    let found = client.names(&query).await?;
    match found.items.as_slice() {
        [one] => Ok(one.id),
        [] => Err(unknown(noun, text, &found.near).into()),
        several => Err(ambiguous(noun, text, several).into()),
    }
}

fn unknown(noun: Noun, text: &str, near: &[String]) -> Refusal {
    let message = format!("there is no {} {}", spoken(noun), printable(text));
    let advice = if near.is_empty() {
        format!("See which there are: stationmaster {} list", listed(noun))
    } else {
        let some: Vec<&str> = near.iter().take(3).map(String::as_str).collect();
        format!("Did you mean {}?", some.join(" or "))
    };
    Refusal::new(Kind::NotFound, message, advice)
}

fn ambiguous(noun: Noun, text: &str, several: &[NameFound]) -> Refusal {
    let message = format!("{} may mean several {}", printable(text), plural(noun));
    let which: Vec<String> = several.iter().map(spelled).collect();
    Refusal::usage(message, format!("Say which: {}", which.join(", ")))
}

/// How one of several can be named.
fn spelled(found: &NameFound) -> String {
    match (&found.workspace, &found.name) {
        (Some(workspace), Some(name)) if workspace != name => format!("{workspace}.{name}"),
        _ => found.id.to_string(),
    }
}

fn spoken(noun: Noun) -> &'static str {
    match noun {
        Noun::Item => "queue item",
        noun => noun.as_str(),
    }
}

fn plural(noun: Noun) -> String {
    format!("{}s", spoken(noun))
}

/// Under which command things are listed.
fn listed(noun: Noun) -> &'static str {
    match noun {
        Noun::Workspace => "workspaces",
        Noun::Workflow => "workflows",
        Noun::Alarm => "alarms",
        Noun::Token => "tokens",
        Noun::Server => "servers",
        Noun::Item => "queue",
        Noun::Execution => "executions",
    }
}
