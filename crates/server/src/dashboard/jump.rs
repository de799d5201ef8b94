//! From any id or name to its page, and names as one types.

use std::collections::BTreeSet;

use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use futures::TryStreamExt as _;
use futures::future::{join_all, join5};
use maud::html;
use stationmaster_client::wire::{DispatcherQuery, NameFound, NameQuery, Noun, Signal, SignalQuery, Stray};
use stationmaster_client::{Client, Error};
use uuid::Uuid;

use super::fields::{Fields, address, segment};
use super::frame::{Page, Trouble};
use super::pieces::nothing;
use super::session::Visitor;
use super::strays;

/// What has a name or an id that people paste, in the order in which it is told.
const NOUNS: [Noun; 6] = [
    Noun::Workspace,
    Noun::Workflow,
    Noun::Alarm,
    Noun::Item,
    Noun::Execution,
    Noun::Server,
];
/// Names that are told of each kind while one types.
const OFFERED: usize = 20;
/// What stands before the id of an execution in its name on an engine.
const ON_THE_ENGINE: &str = "execution-";

/// Something that was found, and where it has its page.
struct Found {
    noun: String,
    called: String,
    within: Option<String>,
    page: String,
}

impl Found {
    fn new(noun: &str, called: impl Into<String>, page: String) -> Self {
        Self {
            noun: noun.to_owned(),
            called: called.into(),
            within: None,
            page,
        }
    }

    fn of(noun: Noun, one: NameFound) -> Self {
        let page = page_of(noun, &one);
        Self {
            within: one.workspace,
            ..Self::new(
                noun.as_str(),
                one.name.unwrap_or_else(|| one.id.to_string()),
                page,
            )
        }
    }
}

/// Where a thing has its page.
fn page_of(noun: Noun, found: &NameFound) -> String {
    match noun {
        Noun::Workspace => format!(
            "/workspaces/{}",
            segment(&found.name.clone().unwrap_or_else(|| found.id.to_string()))
        ),
        Noun::Workflow => format!("/workflows/{}", found.id),
        Noun::Alarm => format!("/alarms/{}", found.id),
        Noun::Item => format!("/queue/{}", found.id),
        Noun::Execution => format!("/executions/{}", found.id),
        Noun::Token => "/tokens".to_owned(),
        Noun::Server => "/servers".to_owned(),
    }
}

/// What there is of that name or id among what the API knows by names, and names that resemble it.
async fn named(client: &Client, text: &str) -> (Vec<Found>, Vec<(String, String)>) {
    let asked = NOUNS.map(|noun| async move {
        let query = NameQuery {
            noun,
            text: text.to_owned(),
            workspace_id: None,
        };
        (noun, client.names(&query).await)
    });
    let (mut found, mut known, mut near) = (Vec::new(), Vec::new(), Vec::new());
    for (noun, names) in join_all(asked).await {
        // What cannot be of this kind is no error here.
        let Ok(names) = names else {
            continue;
        };
        for one in names.items {
            // The first execution of an item has the item's id, and the same page.
            if !known.contains(&one.id) {
                known.push(one.id);
                found.push(Found::of(noun, one));
            }
        }
        near.extend(names.near.into_iter().map(|name| (noun.to_string(), name)));
    }
    (found, near)
}

/// What is known by other words: signals by what their senders called them, locks, dispatchers, operations, groups of failures. Whatever
/// this visitor may not see is not there.
async fn called(client: &Client, text: &str) -> (Vec<Found>, Vec<(String, String)>) {
    let (signals, locks, dispatcher, operation, group) = join5(
        signals(client, text),
        client.locks(),
        client.dispatcher(text),
        client.operation(text),
        client.failure_group(text),
    )
    .await;
    let mut found = signals;
    let (lower, locks) = (text.to_lowercase(), locks.unwrap_or_default());
    let mut near = Vec::new();
    for lock in locks {
        if lock.name == text {
            found.push(Found::new("lock", text, address("/locks", &[("search", text)])));
        } else if lock.name.to_lowercase().contains(&lower) {
            near.push(("lock".to_owned(), lock.name));
        }
    }
    if let Ok(one) = dispatcher {
        let page = format!("/dispatchers/{}", segment(&one.id));
        found.push(Found::new("dispatcher", one.id, page));
    }
    if let Ok(one) = operation {
        let page = format!("/operations/{}", one.id);
        found.push(Found::new("operation", one.id.to_string(), page));
    }
    if let Ok(one) = group {
        let page = format!("/failures/{}", one.id);
        found.push(Found::new("failures", one.message, page));
    }
    (found, near)
}

/// The signal of that id; where several projects have one, each of them.
async fn signals(client: &Client, id: &str) -> Vec<Found> {
    match client.signal(id).await {
        Ok(one) => vec![in_project(one)],
        Err(Error::Conflict(_)) => in_projects(client, id).await,
        Err(_) => Vec::new(),
    }
}

/// The signals of that name, if there are any among the newest.
async fn signals_named(client: &Client, name: &str) -> Option<Found> {
    let query = SignalQuery {
        name: Some(name.to_owned()),
        limit: Some(1),
        ..SignalQuery::default()
    };
    let some = client.signals(&query).await.ok()?;
    some.items.first()?;
    Some(Found::new(
        "signals",
        name,
        address("/signals", &[("name", name)]),
    ))
}

/// The signals of one id, each in its project.
async fn in_projects(client: &Client, id: &str) -> Vec<Found> {
    let dispatchers = client.dispatchers(&DispatcherQuery::default()).await;
    let dispatchers = dispatchers.map(|page| page.items).unwrap_or_default();
    let projects: BTreeSet<String> = dispatchers.into_iter().map(|one| one.project).collect();
    let asked = projects
        .iter()
        .map(|project| async move { client.signal_of(project, id).await.ok() });
    let found = join_all(asked).await.into_iter().flatten();
    found.map(in_project).collect()
}

fn in_project(signal: Signal) -> Found {
    let page = format!("/signals/{}/{}", segment(&signal.project), segment(&signal.id));
    Found {
        within: Some(signal.project),
        ..Found::new("signal", signal.id, page)
    }
}

/// What an engine calls an execution, as we do.
fn as_ours(text: &str) -> &str {
    match text.strip_prefix(ON_THE_ENGINE) {
        Some(id) if Uuid::try_parse(id).is_ok() => id,
        _ => text,
    }
}

/// The page of strays, when a run of that execution is among them.
async fn stray(client: &Client, text: &str) -> Option<Found> {
    let id = Uuid::try_parse(text).ok()?;
    let is_meant = |stray: &Stray| std::future::ready(stray.execution_id == id);
    let mut found = std::pin::pin!(client.all_strays().try_filter(is_meant));
    found.try_next().await.ok()??;
    Some(Found::new("stray", text, strays::PATH.to_owned()))
}

pub(super) async fn jump(visitor: Visitor, fields: Fields) -> Result<Response, Trouble> {
    let Some(text) = fields.get("q").map(as_ours) else {
        return Ok(Redirect::to("/").into_response());
    };
    let (mut found, mut near) = named(&visitor.client, text).await;
    let (others, like) = called(&visitor.client, text).await;
    found.extend(others);
    near.extend(like);
    // No index knows the names of signals, so they are looked through last; and of strays nobody but the engine knows the ids.
    if found.is_empty() {
        found.extend(stray(&visitor.client, text).await);
        found.extend(signals_named(&visitor.client, text).await);
    }
    if let [only] = found.as_slice() {
        return Ok(Redirect::to(&only.page).into_response());
    }
    let body = html! {
        header.page { h1 { "Jump to " q { (text) } } }
        @if found.is_empty() { (nothing("Nothing is called so, and no id begins so.")) }
        @else { ul.found { @for one in &found { li { (one.noun) " " a href=(one.page) { (one.called) } @if let Some(within) = &one.within { " " span.quiet { "in " (within) } } } } } }
        @if !near.is_empty() { h2 { "Like it" } ul.found { @for (noun, name) in near.iter().take(20) { li { (noun) " " a href=(address("/jump", &[("q", name)])) { (name) } } } } }
        p { "In inputs and errors: " a href=(address("/queue", &[("search", text)])) { "search the queue" } ", " a href=(address("/executions", &[("search", text)])) { "search executions" } }
    };
    Ok(Page::new("Jump", body).into_response())
}

/// Names that begin so, as options of a list.
pub(super) async fn complete(visitor: Visitor, fields: Fields) -> Result<Response, Trouble> {
    let text = fields.owned("text").unwrap_or_default();
    // The box that leads anywhere completes whatever has a name.
    let anything = fields.need("noun")? == "any";
    let nouns = if anything {
        vec![Noun::Workspace, Noun::Workflow, Noun::Alarm, Noun::Server]
    } else {
        vec![fields.must::<Noun>("noun")?]
    };
    let most = OFFERED / nouns.len();
    let mut options = String::new();
    for noun in nouns {
        let query = NameQuery {
            noun,
            text: text.clone(),
            workspace_id: fields.reference("workspace"),
        };
        let found = visitor.client.names(&query).await?;
        let exact = found.items.into_iter().filter_map(|one| {
            // By this name it is found from wherever one jumps.
            match (noun, one.workspace) {
                (Noun::Workflow | Noun::Alarm, Some(workspace)) if anything => {
                    Some(format!("{workspace}.{}", one.name?))
                }
                _ => one.name,
            }
        });
        let mut names: Vec<String> = exact.chain(found.near).collect();
        names.dedup();
        for name in names.iter().take(most) {
            options.push_str(&html! { option value=(name) { (noun) } }.into_string());
        }
    }
    if anything {
        // Whoever may not see locks is offered none.
        let locks = visitor.client.locks().await.unwrap_or_default();
        let meant = locks.iter().filter(|lock| lock.name.starts_with(&text));
        for lock in meant.take(most) {
            options.push_str(&html! { option value=(lock.name) { "lock" } }.into_string());
        }
    }
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, options).into_response())
}
