//! Names: how what people give becomes one, and which thing a request means by it. The one place that knows.
//!
//! An id means itself and costs nothing. A name is looked for among what the caller may see, by an index; what the caller may not
//! see is answered as what is not there.

use std::collections::HashMap;

use stationmaster_wire::{Enqueue, NameFound, NamesFound, Noun, Reference, asked};
use uuid::Uuid;

use crate::alarms::inspect as alarms;
use crate::db::{self, Database, Read as _, statement};
use crate::executions::browse::{self, Filter};
use crate::id::{AlarmId, DefinitionId, WorkspaceId};

mod range;

pub(crate) use range::Range;

/// The longest name.
const LONGEST: usize = 63;
/// What is told at most of what may have been meant.
const TOLD: usize = 20;
/// Names that are compared with one that is unknown.
const COMPARED: i64 = 2_000;
/// How much a name resembles one that may have been meant.
const RESEMBLES: f64 = 0.5;

/// A name that cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Nothing is left of it.
    #[error("{0:?} holds no letter and no digit: a name is made of a-z, 0-9, - and _")]
    Nothing(String),
    /// It would be taken for an id.
    #[error("{0:?} looks like an id: a name must not be mistaken for one")]
    Id(String),
}

/// Why it is not known what is meant.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of that name.
    #[error("there is no {} {name}{}", .noun.as_str(), meant(.near))]
    Unknown {
        /// What was looked for.
        noun: Noun,
        /// By what.
        name: String,
        /// Names that resemble it.
        near: Vec<String>,
    },
    /// There are several.
    #[error("there are several of the name {name}: say which, as {}", .which.join(" or "))]
    Several {
        /// By what was looked for.
        name: String,
        /// How each of them can be named.
        which: Vec<String>,
    },
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] db::Error),
}

fn meant(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let some: Vec<&str> = near.iter().take(3).map(String::as_str).collect();
    format!(": did you mean {}?", some.join(" or "))
}

/// What is given, as a name: lower case, every run of other characters one dash, at most 63 characters. The same rule exists in SQL
/// (`stationmaster.slug`), where everything that is written passes.
#[must_use]
pub fn fold(given: &str) -> String {
    let mut name = String::with_capacity(given.len().min(LONGEST));
    let mut run = false;
    for character in given.chars() {
        let kept = character.to_ascii_lowercase();
        if matches!(kept, 'a'..='z' | '0'..='9' | '_' | '-') {
            name.push(kept);
            run = false;
        } else if !run {
            name.push('-');
            run = true;
        }
    }
    let name = name.trim_start_matches(['-', '_']);
    let name = &name[..name.len().min(LONGEST)];
    name.trim_end_matches('-').to_owned()
}

/// The name that is kept of what is given.
pub fn name(given: &str) -> Result<String, BadName> {
    let name = fold(given);
    if name.is_empty() {
        Err(BadName::Nothing(given.to_owned()))
    } else if Uuid::try_parse(&name).is_ok() {
        Err(BadName::Id(given.to_owned()))
    } else {
        Ok(name)
    }
}

/// The workspace that is meant.
pub async fn workspace(database: &Database, reference: &Reference) -> Result<WorkspaceId, Error> {
    let given = match reference {
        Reference::Id(id) => return Ok(WorkspaceId(*id)),
        Reference::Name(given) => given,
    };
    match workspace_named(database, &fold(given)).await? {
        Some(id) => Ok(id),
        None => Err(unknown(database, Noun::Workspace, given, None).await?),
    }
}

/// The workspace of this name, if there is one that the caller may see.
pub async fn workspace_named(database: &Database, name: &str) -> Result<Option<WorkspaceId>, db::Error> {
    let query = sqlx::query_scalar(statement!("names/workspace"))
        .bind(name)
        .bind(database.among(None));
    query.maybe(database).await
}

/// The workflow that is meant: by its name alone where its workspace is known or no other one has it, else as
/// `workspace.workflow`.
pub async fn workflow(
    database: &Database,
    workspace: Option<WorkspaceId>,
    reference: &Reference,
) -> Result<DefinitionId, Error> {
    let given = match reference {
        Reference::Id(id) => return Ok(DefinitionId(*id)),
        Reference::Name(given) => given,
    };
    only_one(database, Noun::Workflow, workspace, given)
        .await
        .map(DefinitionId)
}

/// The alarm that is meant: by its name alone where no other workspace has one of that name, else as `workspace.alarm`.
pub async fn alarm(database: &Database, reference: &Reference) -> Result<AlarmId, Error> {
    match reference {
        Reference::Id(id) => Ok(AlarmId(*id)),
        Reference::Name(given) => only_one(database, Noun::Alarm, None, given).await.map(AlarmId),
    }
}

/// The one thing of a workspace that has the name.
async fn only_one(
    database: &Database,
    noun: Noun,
    workspace: Option<WorkspaceId>,
    given: &str,
) -> Result<Uuid, Error> {
    let mut found = named_within(database, noun, workspace, given).await?;
    match found.len() {
        0 => Err(unknown(database, noun, given, workspace).await?),
        1 => Ok(found.remove(0).id),
        _ => Err(Error::Several {
            name: given.to_owned(),
            which: found.iter().map(spelled).collect(),
        }),
    }
}

/// Workflows or alarms of a name, in the workspace or in the one that the name itself tells.
async fn named_within(
    database: &Database,
    noun: Noun,
    workspace: Option<WorkspaceId>,
    given: &str,
) -> Result<Vec<NameFound>, db::Error> {
    let statement = match noun {
        Noun::Workflow => statement!("names/workflow"),
        Noun::Alarm => statement!("names/alarm"),
        _ => return Ok(Vec::new()),
    };
    let (within, name) = match given.rsplit_once('.') {
        Some((workspace, name)) => (Some(workspace), name),
        None => (None, given),
    };
    // The part before the dot may be an id as well.
    let (workspace, within) = match within.map(Reference::from) {
        Some(Reference::Id(id)) => (Some(WorkspaceId(id)), None),
        Some(Reference::Name(name)) => (None, Some(fold(&name))),
        None => (workspace, None),
    };
    let query = sqlx::query_as(statement)
        .bind(fold(name))
        .bind(workspace)
        .bind(within)
        .bind(database.among(None))
        .bind(i64::try_from(TOLD).unwrap_or_default());
    query.all(database).await
}

/// How a thing that was found can be named, whatever else there is.
fn spelled(found: &NameFound) -> String {
    match (&found.workspace, &found.name) {
        (Some(workspace), Some(name)) => format!("{workspace}.{name}"),
        (_, Some(name)) => name.clone(),
        (_, None) => found.id.to_string(),
    }
}

/// What requests mean, each name looked for once.
pub async fn enqueues(database: &Database, requests: Vec<asked::Enqueue>) -> Result<Vec<Enqueue>, Error> {
    let mut known: HashMap<(Reference, Reference), (Uuid, Uuid)> = HashMap::new();
    let mut meant = Vec::with_capacity(requests.len());
    for request in requests {
        let key = (
            request.workspace_id.clone(),
            request.workflow_definition_id.clone(),
        );
        let (workspace, definition) = match (&key, known.get(&key)) {
            ((Reference::Id(workspace), Reference::Id(definition)), _) => (*workspace, *definition),
            (_, Some(ids)) => *ids,
            _ => {
                let workspace = self::workspace(database, &key.0).await?;
                let definition = workflow(database, Some(workspace), &key.1).await?;
                let ids = (workspace.0, definition.0);
                known.insert(key, ids);
                ids
            }
        };
        meant.push(request.with_ids(workspace, definition));
    }
    Ok(meant)
}

/// An unknown name, with those that resemble it.
async fn unknown(
    database: &Database,
    noun: Noun,
    given: &str,
    workspace: Option<WorkspaceId>,
) -> Result<Error, db::Error> {
    Ok(Error::Unknown {
        noun,
        name: given.to_owned(),
        near: near(database, noun, given, workspace, Otherwise::Resembling).await?,
    })
}

/// What a person may mean by a text: the thing of that name or id; else those whose ids begin so; and names that begin so or resemble it.
pub async fn find(
    database: &Database,
    noun: Noun,
    text: &str,
    workspace: Option<WorkspaceId>,
) -> Result<NamesFound, db::Error> {
    let text = text.trim();
    let mut items = named(database, noun, text, workspace).await?;
    if items.is_empty()
        && let Some(range) = Range::of(text)
    {
        items = beginning(database, noun, range, workspace).await?;
        items.truncate(TOLD);
    }
    let otherwise = if items.is_empty() && Uuid::try_parse(text).is_err() {
        Otherwise::Resembling
    } else {
        Otherwise::Nothing
    };
    let near = near(database, noun, text, workspace, otherwise).await?;
    Ok(NamesFound { items, near })
}

/// Those of exactly this name.
async fn named(
    database: &Database,
    noun: Noun,
    text: &str,
    workspace: Option<WorkspaceId>,
) -> Result<Vec<NameFound>, db::Error> {
    if text.is_empty() || Uuid::try_parse(text).is_ok() {
        return Ok(Vec::new());
    }
    match noun {
        Noun::Workflow | Noun::Alarm => named_within(database, noun, workspace, text).await,
        Noun::Workspace | Noun::Server => {
            let name = fold(text);
            let most = i64::try_from(TOLD).unwrap_or_default();
            let rows = listed(database, noun, Range::ALL, &name, workspace, most).await?;
            Ok(rows
                .into_iter()
                .filter(|found| found.name.as_deref() == Some(&name))
                .collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// Those whose ids begin so. Of what there is much of, the newest are looked at, by the indexes of their lists.
async fn beginning(
    database: &Database,
    noun: Noun,
    range: Range,
    workspace: Option<WorkspaceId>,
) -> Result<Vec<NameFound>, db::Error> {
    let one = |id, name, workspace| NameFound { id, name, workspace };
    let found: Vec<NameFound> = match noun {
        Noun::Workspace | Noun::Workflow | Noun::Server => {
            let most = i64::try_from(TOLD).unwrap_or_default();
            listed(database, noun, range, "", workspace, most).await?
        }
        Noun::Item => {
            let page = browse::items(database, &newest(range, workspace)).await?;
            let rows = page.rows.into_iter();
            rows.map(|item| one(item.id, None, item.workspace)).collect()
        }
        Noun::Execution => {
            let page = browse::executions(database, &newest(range, workspace)).await?;
            let rows = page.rows.into_iter();
            rows.map(|execution| one(execution.id, None, execution.workspace))
                .collect()
        }
        Noun::Alarm => {
            let query = stationmaster_wire::AlarmQuery::default();
            let before = Some(AlarmId(range.end()));
            let page = alarms::alarms(database, &query, workspace, before, TOLD).await?;
            let rows = page.rows.into_iter();
            rows.map(|alarm| one(alarm.id, alarm.name, alarm.workspace))
                .collect()
        }
        Noun::Token => Vec::new(),
    };
    Ok(found.into_iter().filter(|found| range.holds(found.id)).collect())
}

fn newest<Status>(range: Range, workspace: Option<WorkspaceId>) -> Filter<Status> {
    Filter {
        workspace,
        beyond: Some(range.end()),
        limit: TOLD,
        ..Filter::default()
    }
}

/// Things of the catalogue whose ids and names begin so, in the order of their names.
async fn listed(
    database: &Database,
    noun: Noun,
    range: Range,
    beginning: &str,
    workspace: Option<WorkspaceId>,
    most: i64,
) -> Result<Vec<NameFound>, db::Error> {
    let statement = match noun {
        Noun::Workspace => statement!("names/workspaces"),
        Noun::Workflow => statement!("names/workflows"),
        Noun::Alarm => statement!("names/alarms"),
        Noun::Server => statement!("names/servers"),
        Noun::Token | Noun::Item | Noun::Execution => return Ok(Vec::new()),
    };
    let query = sqlx::query_as(statement)
        .bind(range.from)
        .bind(range.to)
        .bind(beginning)
        .bind(database.among(workspace))
        .bind(most);
    query.all(database).await
}

/// What is told when no name begins so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    /// Names that resemble it: very many are read for that, so only for whoever has found nothing and gave no id.
    Resembling,
    Nothing,
}

/// Names that begin so, or else those that resemble it.
async fn near(
    database: &Database,
    noun: Noun,
    text: &str,
    workspace: Option<WorkspaceId>,
    otherwise: Otherwise,
) -> Result<Vec<String>, db::Error> {
    let (beginning, most) = (
        text.trim().to_ascii_lowercase(),
        i64::try_from(TOLD).unwrap_or_default(),
    );
    let mut known = listed(database, noun, Range::ALL, &beginning, workspace, most).await?;
    if known.is_empty() && otherwise == Otherwise::Resembling {
        known = listed(database, noun, Range::ALL, "", workspace, COMPARED).await?;
    }
    let with_workspace = matches!(noun, Noun::Workflow | Noun::Alarm) && workspace.is_none();
    Ok(resembling(&known, with_workspace, text))
}

/// What a text means among a few things: the one of that name, or those whose ids begin so; and what may have been meant.
#[must_use]
pub fn among(known: Vec<NameFound>, text: &str) -> NamesFound {
    let near = resembling(&known, false, text);
    let (id, name, range) = (Uuid::try_parse(text).ok(), fold(text), Range::of(text));
    let is_meant = |one: &NameFound| Some(one.id) == id || one.name.as_deref() == Some(&name);
    let mut items: Vec<NameFound> = known.iter().filter(|one| is_meant(one)).cloned().collect();
    if items.is_empty() {
        let begins = |one: &NameFound| range.is_some_and(|range| range.holds(one.id));
        items = known.into_iter().filter(begins).take(TOLD).collect();
    }
    NamesFound { items, near }
}

fn resembling(known: &[NameFound], with_workspace: bool, text: &str) -> Vec<String> {
    let wanted = text.trim().to_ascii_lowercase();
    let spell = |found: &NameFound| {
        if with_workspace {
            spelled(found)
        } else {
            found.name.clone().unwrap_or_default()
        }
    };
    let known: Vec<(String, &NameFound)> = known.iter().map(|found| (spell(found), found)).collect();
    let begins = |(spelled, found): &&(String, &NameFound)| {
        spelled.starts_with(&wanted)
            || found
                .name
                .as_deref()
                .is_some_and(|name| name.starts_with(&wanted))
    };
    let begin: Vec<String> = known
        .iter()
        .filter(begins)
        .take(TOLD)
        .map(|(spelled, _)| spelled.clone())
        .collect();
    if !begin.is_empty() {
        return begin;
    }
    let likeness = |(spelled, found): &(String, &NameFound)| {
        let name = found.name.as_deref().unwrap_or_default();
        let whole = strsim::normalized_damerau_levenshtein(&wanted, spelled);
        (
            whole.max(strsim::normalized_damerau_levenshtein(&wanted, name)),
            spelled.clone(),
        )
    };
    let mut alike: Vec<(f64, String)> = known.iter().map(likeness).collect();
    alike.retain(|(likeness, _)| *likeness >= RESEMBLES);
    alike.sort_by(|one, other| other.0.total_cmp(&one.0));
    alike.into_iter().take(5).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_folded() {
        for (given, kept) in [
            ("shop", "shop"),
            ("  My Shop! ", "my-shop"),
            ("Café", "caf"),
            ("a_b--c", "a_b--c"),
            ("-_x", "x"),
            ("Ünïcode", "n-code"),
            ("...", ""),
        ] {
            assert_eq!(fold(given), kept, "{given:?}");
        }
        assert_eq!(fold(&"x".repeat(100)).len(), 63);
        assert_eq!(fold(&format!("{} y", "x".repeat(62))), "x".repeat(62));
    }

    #[test]
    fn nothing_and_ids_are_no_names() {
        assert!(matches!(name("..."), Err(BadName::Nothing(_))));
        for id in [
            "01890A5D-AC96-774B-BCCE-B302099A8057",
            "01890a5dac96774bbcceb302099a8057",
        ] {
            assert!(matches!(name(id), Err(BadName::Id(_))), "{id}");
        }
        assert!(name("01890a5d").is_ok());
    }

    fn known(names: &[(&str, Option<&str>)]) -> Vec<NameFound> {
        let one = |(at, (name, workspace)): (usize, &(&str, Option<&str>))| NameFound {
            id: Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8000 + at as u128),
            name: Some((*name).to_owned()),
            workspace: workspace.map(str::to_owned),
        };
        names.iter().enumerate().map(one).collect()
    }

    #[test]
    fn what_begins_so_resembles_it_before_what_is_only_like_it() {
        let shops = known(&[("shop", None), ("shoes", None), ("storage", None)]);
        assert_eq!(resembling(&shops, false, " SHO "), ["shop", "shoes"]);
        assert_eq!(resembling(&shops, false, "shpo"), ["shop"]);
        assert_eq!(resembling(&shops, false, "soes"), ["shoes"]);
        assert_eq!(resembling(&shops, false, "quite another"), [] as [&str; 0]);
        let alike = known(&[("ordre", None), ("order", None)]);
        assert_eq!(
            resembling(&alike, false, "orderr"),
            ["order", "ordre"],
            "the likest first"
        );
        let many: Vec<String> = (0..30).map(|number| format!("aab{number:02}")).collect();
        let many: Vec<(&str, Option<&str>)> = many.iter().map(|name| (name.as_str(), None)).collect();
        assert_eq!(resembling(&known(&many), false, "aab").len(), TOLD);
        assert_eq!(resembling(&known(&many), false, "aaxb00").len(), 5);
    }

    #[test]
    fn with_its_workspace_a_thing_is_found_by_either_and_told_by_both() {
        let imports = known(&[("import", Some("shop")), ("export", Some("store"))]);
        assert_eq!(resembling(&imports, true, "imp"), ["shop.import"]);
        assert_eq!(resembling(&imports, true, "store.e"), ["store.export"]);
        assert_eq!(resembling(&imports, true, "exprto"), ["store.export"]);
        assert_eq!(resembling(&imports, true, "shop.imprt")[0], "shop.import");
        assert_eq!(resembling(&imports, false, "exp"), ["export"]);
        let nameless = NameFound {
            name: None,
            ..imports[0].clone()
        };
        assert_eq!(spelled(&nameless), nameless.id.to_string());
    }

    #[test]
    fn among_a_few_the_one_of_that_name_or_id_is_meant_and_else_those_that_begin_so() {
        let tokens = known(&[("night", None), ("nightly", None)]);
        let ids = |text: &str| {
            let found = among(tokens.clone(), text).items;
            found.into_iter().filter_map(|one| one.name).collect::<Vec<_>>()
        };
        assert_eq!(ids("Night"), ["night"]);
        assert_eq!(ids(&tokens[1].id.to_string()), ["nightly"]);
        assert_eq!(ids("01890a5d"), ["night", "nightly"]);
        assert_eq!(ids("nig"), [] as [&str; 0]);
        assert_eq!(among(tokens.clone(), "nig").near, ["night", "nightly"]);
    }

    #[test]
    fn up_to_three_names_are_asked_about() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(meant(&names), ": did you mean a or b or c?");
        assert_eq!(meant(&names[..1]), ": did you mean a?");
        assert_eq!(meant(&[]), "");
    }
}
