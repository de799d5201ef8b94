//! From any id or name to its page, and names as one types.

use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use stationmaster_client::wire::{NameFound, NameQuery, Noun};

use super::fields::{Fields, segment};
use super::frame::{Page, Trouble};
use super::pieces::nothing;
use super::session::Visitor;

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

/// What there is of that name or id, of whatever kind.
async fn find(
    visitor: &Visitor,
    text: &str,
) -> Result<(Vec<(Noun, NameFound)>, Vec<(Noun, String)>), Trouble> {
    let (mut found, mut near): (Vec<(Noun, NameFound)>, _) = (Vec::new(), Vec::new());
    for noun in [
        Noun::Workspace,
        Noun::Workflow,
        Noun::Alarm,
        Noun::Item,
        Noun::Execution,
        Noun::Server,
    ] {
        let query = NameQuery {
            noun,
            text: text.to_owned(),
            workspace_id: None,
        };
        // What cannot be of this kind is no error here.
        let Ok(names) = visitor.client.names(&query).await else {
            continue;
        };
        for name in names.items {
            // The first execution of an item has the item's id, and the same page.
            if !found.iter().any(|(_, known)| known.id == name.id) {
                found.push((noun, name));
            }
        }
        near.extend(names.near.into_iter().map(|name| (noun, name)));
    }
    Ok((found, near))
}

pub(super) async fn jump(visitor: Visitor, fields: Fields) -> Result<Response, Trouble> {
    let Some(text) = fields.get("q") else {
        return Ok(Redirect::to("/").into_response());
    };
    let hexadecimal = text.len() == 15 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hexadecimal && visitor.client.failure_group(text).await.is_ok() {
        return Ok(Redirect::to(&format!("/failures/{text}")).into_response());
    }
    let (found, near) = find(&visitor, text).await?;
    if let [(noun, only)] = found.as_slice() {
        return Ok(Redirect::to(&page_of(*noun, only)).into_response());
    }
    let body = html! {
        header.page { h1 { "Jump to " q { (text) } } }
        @if found.is_empty() { (nothing("Nothing is called so, and no id begins so.")) }
        @else { ul.found { @for (noun, one) in &found { li { (noun) " " a href=(page_of(*noun, one)) { (one.name.clone().unwrap_or_else(|| one.id.to_string())) } @if let Some(workspace) = &one.workspace { " " span.quiet { "in " (workspace) } } } } } }
        @if !near.is_empty() { h2 { "Like it" } ul.found { @for (noun, name) in near.iter().take(20) { li { (noun) " " a href=(super::fields::address("/jump", &[("q", name)])) { (name) } } } } }
        p { "In inputs and errors: " a href=(super::fields::address("/queue", &[("search", text)])) { "search the queue" } ", " a href=(super::fields::address("/executions", &[("search", text)])) { "search executions" } }
    };
    Ok(Page::new("Jump", body).into_response())
}

/// Names that begin so, as options of a list.
pub(super) async fn complete(visitor: Visitor, fields: Fields) -> Result<Response, Trouble> {
    let text = fields.owned("text").unwrap_or_default();
    // The box that leads anywhere completes whatever has a name.
    let nouns = match fields.need("noun")? {
        "any" => vec![Noun::Workspace, Noun::Workflow, Noun::Alarm, Noun::Server],
        _ => vec![fields.must::<Noun>("noun")?],
    };
    let most = 20 / nouns.len();
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
                (Noun::Workflow | Noun::Alarm, Some(workspace)) if most < 20 => {
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
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, options).into_response())
}
