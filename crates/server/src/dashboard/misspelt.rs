//! A filter that names what is not there: the list keeps its form with what was typed, says which name is unknown, and leads to what may
//! have been meant.

use maud::{Markup, html};
use stationmaster_client::Error;
use stationmaster_client::wire::{NameQuery, Noun, Reference};

use super::Answer;
use super::fields::{Fields, address};
use super::frame::{Page, Trouble};
use super::pieces::{Filter, filters};
use super::session::Visitor;

/// A list whose filters may name what is not there.
pub(super) struct List<'a> {
    pub(super) title: &'a str,
    pub(super) path: &'a str,
    pub(super) filters: &'a [Filter<'a>],
}

/// A name that means nothing, or several things.
struct Unknown<'a> {
    field: &'a str,
    noun: Noun,
    /// The whole of what was typed, of which `name` is a part where several can be given.
    typed: &'a str,
    name: &'a str,
    /// What can be typed instead.
    meant: Vec<String>,
    several: bool,
}

/// The list without its rows, when it is for a name that it cannot be shown; otherwise the trouble.
pub(super) async fn explain(visitor: &Visitor, fields: &Fields, list: &List<'_>, error: Error) -> Answer {
    let Some(words) = unknown(visitor, fields, list, &error).await? else {
        return Err(error.into());
    };
    let body = html! {
        header.page { h1 { (list.title) } }
        (filters(list.path, fields, list.filters))
        section #unknown { (words) }
    };
    Ok(Page::new(list.title, body))
}

/// What is wrong with the names, in words; nothing when the names are not what is wrong.
pub(super) async fn unknown(
    visitor: &Visitor,
    fields: &Fields,
    list: &List<'_>,
    error: &Error,
) -> Result<Option<Markup>, Trouble> {
    if !matches!(error, Error::NotFound(_) | Error::Conflict(_)) {
        return Ok(None);
    }
    let mut all = Vec::new();
    let mut within = None;
    for filter in list.filters {
        let Filter::Name(field, _, noun) = filter else {
            continue;
        };
        let (Some(typed), Ok(noun)) = (fields.get(field), noun.parse::<Noun>()) else {
            continue;
        };
        let before = all.len();
        // Of workspaces several may be named, with commas between them.
        for name in typed.split(',').map(str::trim) {
            all.extend(look_for(visitor, (*field, noun), typed, name, within.clone()).await?);
        }
        // Workflows are looked for in the workspace that is named beside them, if there is one.
        if noun == Noun::Workspace && all.len() == before && !typed.contains(',') {
            within = Some(Reference::from(typed));
        }
    }
    Ok((!all.is_empty()).then(|| html! { @for one in &all { (told(one, fields, list.path)) } }))
}

async fn look_for<'a>(
    visitor: &Visitor,
    (field, noun): (&'a str, Noun),
    typed: &'a str,
    name: &'a str,
    workspace_id: Option<Reference>,
) -> Result<Option<Unknown<'a>>, Trouble> {
    let query = NameQuery {
        noun,
        text: name.to_owned(),
        workspace_id,
    };
    let found = visitor.client.names(&query).await?;
    let spelled = found.items.iter().filter_map(|one| {
        let (workspace, name) = (one.workspace.as_deref()?, one.name.as_deref()?);
        Some(format!("{workspace}.{name}"))
    });
    let unknown = |meant, several| Unknown {
        field,
        noun,
        typed,
        name,
        meant,
        several,
    };
    Ok(match found.items.len() {
        0 => Some(unknown(found.near, false)),
        1 => None,
        _ => Some(unknown(spelled.collect(), true)),
    })
}

fn told(one: &Unknown<'_>, fields: &Fields, path: &str) -> Markup {
    let instead = |name: &str| {
        let mut pairs = fields.without(&[one.field, "cursor", "page"]);
        pairs.push((one.field.to_owned(), one.typed.replace(one.name, name)));
        address(path, &pairs)
    };
    html! {
        p.wrong role="alert" {
            @if one.several { "There are several of the name " q { (one.name) } ": say which." }
            @else { "There is no " (one.noun) " " q { (one.name) } "." }
        }
        @if !one.meant.is_empty() {
            p { @if one.several { "There are " } @else { "Near it: " }
                @for (at, name) in one.meant.iter().take(8).enumerate() { @if at > 0 { ", " } a href=(instead(name)) { (name) } }
            }
        }
    }
}
