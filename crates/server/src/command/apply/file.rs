//! What is wanted, as a file says it. Names are folded, graphs are looked at, and what cannot be is told with its place before anybody
//! is asked.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stationmaster_core::graph::Graph;
use stationmaster_core::names;

use crate::command::arguments::read as read_text;
use crate::failure::Refusal;

/// A field by its name on the wire, and what it is to be.
pub(super) type Fields = Map<String, Value>;

/// Everything that a file wants.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) plans: Vec<(String, Fields)>,
    pub(super) workspaces: Vec<Workspace>,
}

/// A workspace and what is in it.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub(super) name: String,
    pub(super) fields: Fields,
    pub(super) workflows: Vec<Workflow>,
    pub(super) triggers: Vec<Trigger>,
    pub(super) alarms: Vec<(String, Fields)>,
}

/// A workflow, with its graph when the file has one.
#[derive(Debug)]
pub(super) struct Workflow {
    pub(super) name: String,
    pub(super) fields: Fields,
    pub(super) graph: Option<Value>,
}

/// A trigger.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trigger {
    pub(super) project: String,
    pub(super) signal: String,
    pub(super) task_queue: Option<String>,
    /// Of the same workspace.
    pub(super) workflow: String,
    #[serde(default)]
    pub(super) priority: i32,
    pub(super) payload_schema: Option<Value>,
}

/// As it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    plans: BTreeMap<String, Fields>,
    #[serde(default)]
    workspaces: BTreeMap<String, WrittenWorkspace>,
}

#[derive(Debug, Deserialize)]
struct WrittenWorkspace {
    #[serde(default)]
    workflows: BTreeMap<String, Fields>,
    #[serde(default)]
    triggers: Vec<Trigger>,
    #[serde(default)]
    alarms: BTreeMap<String, Fields>,
    #[serde(flatten)]
    fields: Fields,
}

/// What may be said of each, by the name of the field on the wire.
const PLAN: &[&str] = &["max_concurrent", "weight"];
const WORKSPACE: &[&str] = &["plan", "max_concurrent", "paused"];
const WORKFLOW: &[&str] = &[
    "task_queue",
    "workflow_type",
    "max_attempts",
    "run_timeout",
    "published_version",
    "paused",
    "graph",
    "graph_file",
];
const ALARM: &[&str] = &[
    "label",
    "fire_at",
    "civil_at",
    "cron_expr",
    "timezone",
    "target_url",
    "user_id",
    "conversation_id",
    "message",
    "payload",
    "max_failures",
    "misfire",
    "catch_up",
    "misfire_window",
    "overlap",
    "dst",
    "jitter",
    "start_at",
    "end_at",
    "pause_after",
];

/// Reads a file, or the standard input.
pub(super) fn read(path: &str) -> Result<Wanted> {
    let folder = Path::new(path).parent().unwrap_or_else(|| Path::new("."));
    Ok(parse(&read_text(path)?, folder)?)
}

fn parse(text: &str, folder: &Path) -> Result<Wanted, Refusal> {
    let written: Written = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].lines().count().max(1)
        });
        wrong(&format!("line {line}"), error.message())
    })?;
    let mut wanted = Wanted::default();
    for (name, mut fields) in written.plans {
        fields.values_mut().for_each(write_dates);
        let place = format!("plans.{name}");
        only(&place, &fields, PLAN)?;
        if wanted
            .plans
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(&name))
        {
            return Err(wrong(&place, &format!("there are two of the name {name}")));
        }
        wanted.plans.push((name, fields));
    }
    for (name, workspace) in written.workspaces {
        let workspace = read_workspace(&name, workspace, folder)?;
        let place = format!("workspaces.{name}");
        once(
            &place,
            wanted.workspaces.iter().map(|known| &known.name),
            &workspace.name,
        )?;
        wanted.workspaces.push(workspace);
    }
    Ok(wanted)
}

const ADVICE: &str = "Mend the file; nothing was changed. docs/guides/apply.md tells what it may say";

fn wrong(place: &str, words: &str) -> Refusal {
    refusal(format!("{place}: {words}"))
}

/// What is wrong with a file.
pub(super) fn refusal(words: String) -> Refusal {
    Refusal::usage(words, ADVICE)
}

/// TOML has dates of its own, which come as objects of one field; JSON says them as texts.
fn write_dates(value: &mut Value) {
    const DATE: &str = "$__toml_private_datetime";
    match value {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key(DATE) => {
            *value = fields.remove(DATE).unwrap_or_default();
        }
        Value::Object(fields) => fields.values_mut().for_each(write_dates),
        Value::Array(values) => values.iter_mut().for_each(write_dates),
        _ => {}
    }
}

fn read_workspace(name: &str, mut written: WrittenWorkspace, folder: &Path) -> Result<Workspace, Refusal> {
    let place = format!("workspaces.{name}");
    let nouns = written.workflows.values_mut().chain(written.alarms.values_mut());
    for fields in nouns.chain([&mut written.fields]) {
        fields.values_mut().for_each(write_dates);
    }
    let schemas = written
        .triggers
        .iter_mut()
        .filter_map(|trigger| trigger.payload_schema.as_mut());
    schemas.for_each(write_dates);
    only(&place, &written.fields, WORKSPACE)?;
    let mut workspace = Workspace {
        name: folded(&place, name)?,
        fields: written.fields,
        ..Workspace::default()
    };
    for (name, fields) in written.workflows {
        let place = format!("{place}.workflows.{name}");
        let workflow = read_workflow(&place, &name, fields, folder)?;
        once(
            &place,
            workspace.workflows.iter().map(|known| &known.name),
            &workflow.name,
        )?;
        workspace.workflows.push(workflow);
    }
    for mut trigger in written.triggers {
        let place = format!("{place}.triggers.{}", trigger.signal);
        trigger.workflow = folded(&place, &trigger.workflow)?;
        workspace.triggers.push(trigger);
    }
    for (name, fields) in written.alarms {
        let place = format!("{place}.alarms.{name}");
        if fields.contains_key("delay") {
            let words = "a delay is counted from when it is asked for: say fire_at, civil_at or cron_expr";
            return Err(wrong(&place, words));
        }
        only(&place, &fields, ALARM)?;
        let name = folded(&place, &name)?;
        once(&place, workspace.alarms.iter().map(|(known, _)| known), &name)?;
        workspace.alarms.push((name, fields));
    }
    Ok(workspace)
}

fn read_workflow(place: &str, name: &str, mut fields: Fields, folder: &Path) -> Result<Workflow, Refusal> {
    only(place, &fields, WORKFLOW)?;
    let graph = match (fields.remove("graph"), fields.remove("graph_file")) {
        (Some(_), Some(_)) => return Err(wrong(place, "give graph or graph_file, not both")),
        (Some(graph), None) => Some(graph),
        (None, Some(path)) => {
            let path = folder.join(path.as_str().unwrap_or_default());
            let text = std::fs::read_to_string(&path)
                .map_err(|error| wrong(place, &format!("cannot read {}: {error}", path.display())))?;
            let graph = serde_json::from_str(&text).map_err(|error| wrong(place, &error.to_string()))?;
            Some(graph)
        }
        (None, None) => None,
    };
    if let Some(graph) = &graph {
        Graph::parse(&graph.to_string()).map_err(|error| wrong(place, &error.to_string()))?;
    }
    Ok(Workflow {
        name: folded(place, name)?,
        fields,
        graph,
    })
}

fn folded(place: &str, name: &str) -> Result<String, Refusal> {
    names::name(name).map_err(|error| wrong(place, &error.to_string()))
}

fn only(place: &str, fields: &Fields, known: &[&str]) -> Result<(), Refusal> {
    match fields.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => Err(wrong(
            place,
            &format!("there is no field {field}: there are {}", known.join(", ")),
        )),
        None => Ok(()),
    }
}

fn once<'a>(place: &str, mut known: impl Iterator<Item = &'a String>, name: &str) -> Result<(), Refusal> {
    if known.any(|known| known == name) {
        return Err(wrong(place, &format!("there are two of the name {name}")));
    }
    Ok(())
}

impl Trigger {
    /// What it is to be, as it is said on the wire.
    pub(super) fn change(&self, workspace: &str) -> Value {
        json!({
            "workflow_definition_id": format!("{workspace}.{}", self.workflow),
            "payload_schema": self.payload_schema,
            "priority": self.priority,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(text, Path::new(".")).unwrap_err().to_string()
    }

    #[test]
    fn what_a_file_says_is_folded_and_complete() {
        let wanted = parse(
            r#"
            [plans.BIG]
            max_concurrent = 50
            [workspaces."My Shop"]
            plan = "BIG"
            [workspaces."My Shop".workflows.Import]
            graph = { nodes = [{ id = "a", type = "noop" }] }
            [[workspaces."My Shop".triggers]]
            project = "orders"
            signal = "paid"
            workflow = "Import"
            [workspaces."My Shop".alarms.nightly]
            cron_expr = "30 2 * * *"
            "#,
            Path::new("."),
        )
        .unwrap();
        let shop = &wanted.workspaces[0];
        assert_eq!((shop.name.as_str(), wanted.plans.len()), ("my-shop", 1));
        assert_eq!(shop.workflows[0].name, "import");
        assert_eq!(shop.triggers[0].workflow, "import");
        assert_eq!(shop.alarms[0].1["cron_expr"], "30 2 * * *");
    }

    #[test]
    fn dates_are_taken_without_quotes_too() {
        let wanted = parse(
            "[workspaces.shop.alarms.x]\nfire_at = 2027-01-01T09:00:00Z\npayload = { day = 2027-01-01 }\n\
             [workspaces.shop.alarms.y]\ncivil_at = 2027-01-01T09:00:00\n",
            Path::new("."),
        )
        .unwrap();
        let alarms = &wanted.workspaces[0].alarms;
        assert_eq!(alarms[0].1["fire_at"], "2027-01-01T09:00:00Z");
        assert_eq!(alarms[0].1["payload"], json!({ "day": "2027-01-01" }));
        assert_eq!(alarms[1].1["civil_at"], "2027-01-01T09:00:00");
    }

    #[test]
    fn what_cannot_be_is_told_with_its_place() {
        for (text, words) in [
            (
                "[workspaces.shop]\nplam = 'PRO'",
                "workspaces.shop: there is no field plam",
            ),
            ("[workspaces.'...']", "no letter"),
            ("[workspaces.Shop]\n[workspaces.shop]", "two of the name shop"),
            (
                "[workspaces.shop.workflows.x]\ngraph = { nodes = [{id = 'a'}, {id = 'a'}] }",
                "workspaces.shop.workflows.x",
            ),
            ("[workspaces.shop.alarms.x]\ndelay = 5", "fire_at"),
            ("[shops.x]", "shops"),
        ] {
            let told = refusal(text);
            assert!(told.contains(words), "{text}: {told}");
        }
    }
}
