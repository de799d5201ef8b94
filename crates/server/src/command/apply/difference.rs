//! What differs between what is wanted and what there is, as steps that can be shown and carried out. Only what the file says is
//! compared: what it leaves out stays as it is.

use std::collections::HashSet;

use anyhow::Result;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use stationmaster_client::wire::{
    Alarm, AlarmQuery, AlarmStatus, NewVersion, PlanChange, Reference, Trigger, TriggerChange, TriggerPlace,
    TriggerQuery, WorkflowChange, WorkflowQuery, WorkspaceChange, asked,
};
use stationmaster_client::{Client, Error, Paged};
use stationmaster_core::alarms::{edit, set};
use stationmaster_core::signals::triggers::{self, Place};
use uuid::Uuid;

use super::file::{self, Fields, Wanted};
use super::same::same;
use crate::command::pages::{Part, listed};
use crate::http::beforehand;

/// Things of a workspace that are looked at.
const MOST: u32 = 10_000;

/// What is to be done, and what stays.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) steps: Vec<Step>,
    pub(super) kept: Vec<String>,
    /// Alarms of the file whose only instant has passed.
    pub(super) over: Vec<String>,
    /// What could not be done, with its place: told before anything is.
    wrong: Vec<String>,
}

/// One change.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    act: Act,
    /// To what: `workflow shop.import`.
    what: String,
    /// Each field that differs: how it is, and how it is to be.
    fields: Map<String, Value>,
    #[serde(skip)]
    deed: Deed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Act {
    Make,
    Change,
    Remove,
}

/// What carries a step out; things are named, as those before them may have been made just now.
#[derive(Debug)]
enum Deed {
    Plan(String, Value),
    Workspace(String, Value),
    Workflow {
        name: String,
        change: Value,
    },
    Version {
        workflow: String,
        graph: Value,
    },
    NewAlarm(Value),
    Alarm {
        before: Box<Alarm>,
        change: Value,
    },
    Trigger {
        trigger: file::Trigger,
        change: Value,
    },
    RemoveWorkflow(String),
    RemoveAlarm(String),
    RemoveTrigger {
        project: String,
        name: String,
        task_queue: Option<String>,
    },
}

/// Compares. Nothing is changed.
pub(super) async fn between(client: &Client, wanted: Wanted, prune: bool) -> Result<Difference> {
    let mut difference = Difference::default();
    let plans = client.plans().await?;
    for (name, fields) in wanted.plans.iter().cloned() {
        let now = plans.iter().find(|plan| plan.name.eq_ignore_ascii_case(&name));
        let name = now.map_or(name, |plan| plan.name.clone());
        let now = now.map(|plan| json!(plan));
        let mut change = fields.clone();
        // A plan is said whole.
        if let (Some(now), None) = (&now, change.get("max_concurrent")) {
            change.insert("max_concurrent".to_owned(), now["max_concurrent"].clone());
        }
        let deed = Deed::Plan(name.clone(), Value::Object(change));
        difference.put(format!("plan {name}"), now.as_ref(), &fields, deed);
    }
    let named = plans.iter().map(|plan| plan.name.as_str());
    let known: Vec<&str> = named
        .chain(wanted.plans.iter().map(|(name, _)| name.as_str()))
        .collect();
    for mut workspace in wanted.workspaces {
        if let Some(Value::String(plan)) = workspace.fields.get_mut("plan") {
            if let Some(known) = known.iter().find(|known| known.eq_ignore_ascii_case(plan)) {
                (*known).clone_into(plan);
            } else {
                let words = format!("there is no plan {plan}, and the file makes none");
                difference.refuse(&format!("workspace {}", workspace.name), &words);
            }
        }
        difference.workspace(client, workspace, prune).await?;
    }
    difference.check(client).await?;
    // What is removed goes last: whatever needed it is changed by then. Workflows take their triggers along, so they go after those.
    difference
        .steps
        .sort_by_key(|step| match (&step.act, &step.deed) {
            (Act::Make | Act::Change, _) => 0,
            (Act::Remove, Deed::RemoveWorkflow(_)) => 2,
            (Act::Remove, _) => 1,
        });
    Ok(difference)
}

impl Difference {
    /// A step, when something differs or is not there.
    fn put(&mut self, what: String, now: Option<&Value>, wanted: &Fields, deed: Deed) {
        let mut fields = Map::new();
        for (field, value) in wanted {
            let before = now.map_or(&Value::Null, |now| &now[field]);
            if now.is_none() || !same(before, value) {
                fields.insert(field.clone(), json!({ "from": before, "to": value }));
            }
        }
        let act = if now.is_some() { Act::Change } else { Act::Make };
        if act == Act::Make || !fields.is_empty() {
            self.steps.push(Step {
                act,
                what,
                fields,
                deed,
            });
        }
    }

    fn refuse(&mut self, what: &str, words: &str) {
        self.wrong.push(format!("{what}: {words}"));
    }

    /// Asks of every step what could be asked without making it: whoever only looks hears what whoever applies would.
    async fn check(&mut self, client: &Client) -> Result<()> {
        for step in &self.steps {
            for words in step.deed.problems(client).await? {
                let told = format!("{}: {words}", step.what);
                if !self.wrong.contains(&told) {
                    self.wrong.push(told);
                }
            }
        }
        match &self.wrong[..] {
            [] => Ok(()),
            wrong => Err(file::refusal(wrong.join("; ")).into()),
        }
    }

    fn stray(&mut self, what: String, deed: Deed, prune: bool) {
        if prune {
            self.steps.push(Step {
                act: Act::Remove,
                what,
                fields: Map::new(),
                deed,
            });
        } else {
            self.kept.push(what);
        }
    }

    async fn workspace(&mut self, client: &Client, wanted: file::Workspace, prune: bool) -> Result<()> {
        let name = &wanted.name;
        let now = there(client.workspace(name.as_str()).await)?;
        let deed = Deed::Workspace(name.clone(), Value::Object(wanted.fields.clone()));
        let before = now.as_ref().map(|now| json!(now));
        self.put(format!("workspace {name}"), before.as_ref(), &wanted.fields, deed);
        let is_there = now.is_some();
        self.workflows(client, &wanted, is_there, prune).await?;
        self.triggers(client, &wanted, is_there, prune).await?;
        self.alarms(client, &wanted, is_there, prune).await
    }

    async fn workflows(
        &mut self,
        client: &Client,
        wanted: &file::Workspace,
        is_there: bool,
        prune: bool,
    ) -> Result<()> {
        let workspace = &wanted.name;
        let query = WorkflowQuery {
            workspace_id: Some(workspace.as_str().into()),
            ..WorkflowQuery::default()
        };
        let now = all(client, is_there, query, Client::workflows).await?;
        for workflow in &wanted.workflows {
            let name = format!("{workspace}.{}", workflow.name);
            let before = now.iter().find(|known| known.name == workflow.name);
            let mut change = workflow.fields.clone();
            // A version has to be there before it is published.
            let published = change.remove("published_version");
            change.insert("workspace_id".to_owned(), json!(workspace));
            let (fields, what) = (&workflow.fields, format!("workflow {name}"));
            let mut first = fields.clone();
            first.remove("published_version");
            let deed = Deed::Workflow {
                name: name.clone(),
                change: Value::Object(change),
            };
            let known = before.map(|known| json!(known));
            self.put(what.clone(), known.as_ref(), &first, deed);
            if let Some(graph) = &workflow.graph {
                let current = before.and_then(|known| known.graph.as_deref());
                let current: Option<Value> = current.and_then(|graph| serde_json::from_str(graph.get()).ok());
                if current.as_ref() != Some(graph) {
                    self.steps.push(Step {
                        act: if before.is_some() { Act::Change } else { Act::Make },
                        what: format!("version of {what}"),
                        fields: [("graph".to_owned(), json!({ "from": current, "to": graph }))]
                            .into_iter()
                            .collect(),
                        deed: Deed::Version {
                            workflow: name.clone(),
                            graph: graph.clone(),
                        },
                    });
                }
            }
            if let Some(published) = published {
                let only: Fields = [("published_version".to_owned(), published)]
                    .into_iter()
                    .collect();
                let mut change = only.clone();
                change.insert("workspace_id".to_owned(), json!(workspace));
                let deed = Deed::Workflow {
                    name,
                    change: Value::Object(change),
                };
                let known = known.unwrap_or_else(|| json!({}));
                self.put(format!("published version of {what}"), Some(&known), &only, deed);
            }
        }
        let named: HashSet<&str> = wanted
            .workflows
            .iter()
            .map(|workflow| workflow.name.as_str())
            .collect();
        for stray in now.iter().filter(|known| !named.contains(known.name.as_str())) {
            let name = format!("{workspace}.{}", stray.name);
            self.stray(format!("workflow {name}"), Deed::RemoveWorkflow(name), prune);
        }
        Ok(())
    }

    async fn triggers(
        &mut self,
        client: &Client,
        wanted: &file::Workspace,
        is_there: bool,
        prune: bool,
    ) -> Result<()> {
        let query = TriggerQuery {
            workspace_id: Some(wanted.name.as_str().into()),
            ..TriggerQuery::default()
        };
        let now = all(client, is_there, query, Client::triggers).await?;
        let is = |known: &Trigger, trigger: &file::Trigger| {
            (&known.project, &known.name, &known.task_queue)
                == (&trigger.project, &trigger.signal, &trigger.task_queue)
        };
        for trigger in &wanted.triggers {
            let known = now.iter().find(|known| is(known, trigger));
            let known = known.map(|known| {
                let mut known = json!(known);
                known["workflow_definition_id"] =
                    match (known["workspace"].as_str(), known["workflow"].as_str()) {
                        (Some(workspace), Some(workflow)) => json!(format!("{workspace}.{workflow}")),
                        _ => Value::Null,
                    };
                known
            });
            let is_known = |name: &str| wanted.workflows.iter().any(|workflow| workflow.name == name);
            if !is_known(&trigger.workflow) {
                let name = format!("{}.{}", wanted.name, trigger.workflow);
                let found = if is_there {
                    there(client.workflow(name.as_str()).await)?
                } else {
                    None
                };
                if found.is_none() {
                    let what =
                        trigger_called(&trigger.project, &trigger.signal, trigger.task_queue.as_deref());
                    self.refuse(
                        &what,
                        &format!("there is no workflow {name}, and the file makes none"),
                    );
                }
            }
            let change = trigger.change(&wanted.name);
            let fields = change.as_object().cloned().unwrap_or_default();
            let deed = Deed::Trigger {
                trigger: trigger.clone(),
                change,
            };
            let what = trigger_called(&trigger.project, &trigger.signal, trigger.task_queue.as_deref());
            self.put(what, known.as_ref(), &fields, deed);
        }
        for stray in now
            .iter()
            .filter(|known| !wanted.triggers.iter().any(|trigger| is(known, trigger)))
        {
            let what = trigger_called(&stray.project, &stray.name, stray.task_queue.as_deref());
            let deed = Deed::RemoveTrigger {
                project: stray.project.clone(),
                name: stray.name.clone(),
                task_queue: stray.task_queue.clone(),
            };
            self.stray(what, deed, prune);
        }
        Ok(())
    }

    async fn alarms(
        &mut self,
        client: &Client,
        wanted: &file::Workspace,
        is_there: bool,
        prune: bool,
    ) -> Result<()> {
        let workspace = &wanted.name;
        let query = AlarmQuery {
            workspace_id: Some(workspace.as_str().into()),
            ..AlarmQuery::default()
        };
        let now: Vec<Alarm> = if is_there && (prune || !wanted.alarms.is_empty()) {
            let living = |alarm: &Alarm| {
                let lives = matches!(alarm.status, AlarmStatus::Active | AlarmStatus::Paused);
                futures::future::ready(lives && alarm.name.is_some())
            };
            client.all_alarms(query).try_filter(living).try_collect().await?
        } else {
            Vec::new()
        };
        for (name, fields) in &wanted.alarms {
            let what = format!("alarm {workspace}.{name}");
            let Some(known) = now.iter().find(|known| known.name.as_ref() == Some(name)) else {
                let mut new = fields.clone();
                new.insert("workspace_id".to_owned(), json!(workspace));
                new.insert("name".to_owned(), json!(name));
                let new = Value::Object(new);
                // It has fired, or would at once, and again at each apply.
                match only_at(&new).filter(|at| *at <= Timestamp::now()) {
                    Some(at) => self.over.push(format!("{what} ({at})")),
                    None => self.put(what, None, fields, Deed::NewAlarm(new)),
                }
                continue;
            };
            let before = json!(known);
            let mut change: Fields = fields.clone();
            change.retain(|field, value| !same(&before[field.as_str()], value));
            // These are said together.
            for (field, with) in [
                ("catch_up", "misfire"),
                ("timezone", "cron_expr"),
                ("timezone", "civil_at"),
            ] {
                if let (true, Some(value)) = (change.contains_key(field), fields.get(with)) {
                    change.insert(with.to_owned(), value.clone());
                }
            }
            let deed = Deed::Alarm {
                before: Box::new(known.clone()),
                change: Value::Object(change),
            };
            self.put(what, Some(&before), fields, deed);
        }
        let named: HashSet<&str> = wanted.alarms.iter().map(|(name, _)| name.as_str()).collect();
        for stray in &now {
            let name = stray.name.as_deref().unwrap_or_default();
            if !named.contains(name) {
                let deed = Deed::RemoveAlarm(stray.id.to_string());
                self.stray(format!("alarm {workspace}.{name}"), deed, prune);
            }
        }
        Ok(())
    }
}

fn trigger_called(project: &str, name: &str, task_queue: Option<&str>) -> String {
    match task_queue {
        Some(queue) => format!("trigger {project}/{name} of task queue {queue}"),
        None => format!("trigger {project}/{name}"),
    }
}

/// All of a list, of a workspace that is there.
async fn all<Q: Paged, T>(
    client: &Client,
    is_there: bool,
    query: Q,
    read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<stationmaster_client::wire::Page<T>>,
) -> Result<Vec<T>> {
    if !is_there {
        return Ok(Vec::new());
    }
    Ok(listed(client, &Part::first(MOST), query, read).await?.rows)
}

/// What is there, if it is.
fn there<T>(found: stationmaster_client::Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// When an alarm fires that fires once; what is wrong with it is told elsewhere.
fn only_at(new: &Value) -> Option<Timestamp> {
    let new: asked::NewAlarm = beforehand::read(new).ok()?;
    set::only_at(&new.with_ids(Uuid::nil()))
}

impl Deed {
    /// What is wrong with it, in words, as far as it can be told before it is done.
    async fn problems(&self, client: &Client) -> Result<Vec<String>> {
        let told = |problems: Vec<set::Error>| problems.iter().map(ToString::to_string).collect();
        Ok(match self {
            Self::Plan(name, change) => beforehand::plan(name, change),
            Self::Workspace(_, change) => beforehand::workspace(change),
            Self::Workflow { change, .. } => beforehand::workflow(change),
            Self::Version { graph, .. } => {
                let workflow = serde_json::value::to_raw_value(graph)?;
                match client.check_graph(&NewVersion { workflow }).await {
                    Ok(_) => Vec::new(),
                    Err(Error::Invalid(problem)) => {
                        let words = problem.errors.into_iter().map(|error| {
                            let place = error.field.trim_start_matches("/workflow/").replace('/', ".");
                            format!("{place}: {}", error.detail)
                        });
                        words.collect()
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Self::NewAlarm(new) => match beforehand::read::<asked::NewAlarm>(new) {
                Ok(new) => told(set::problems(&new.with_ids(Uuid::nil()))),
                Err(wrong) => wrong,
            },
            Self::Alarm { before, change } => match beforehand::read(change) {
                Ok(change) => told(edit::problems(&change, before)),
                Err(wrong) => wrong,
            },
            Self::Trigger { trigger, .. } => {
                let place = Place {
                    project: &trigger.project,
                    task_queue: trigger.task_queue.as_deref(),
                    name: &trigger.signal,
                };
                let schema = trigger.payload_schema.as_ref();
                let schema = schema.map(serde_json::value::to_raw_value).transpose()?;
                let problems = triggers::problems(place, schema.as_deref());
                problems.iter().map(ToString::to_string).collect()
            }
            Self::RemoveWorkflow(_) | Self::RemoveAlarm(_) | Self::RemoveTrigger { .. } => Vec::new(),
        })
    }
}

impl Step {
    /// One line for people.
    pub(super) fn line(&self) -> String {
        let sign = match self.act {
            Act::Make => '+',
            Act::Change => '~',
            Act::Remove => '-',
        };
        let fields: Vec<String> = self
            .fields
            .iter()
            .filter(|(_, values)| self.act == Act::Change || !values["to"].is_null())
            .map(|(field, values)| match (self.act, field.as_str()) {
                (_, "graph" | "payload_schema" | "payload" | "message") => field.clone(),
                (Act::Make, _) => format!("{field} {}", plain(&values["to"])),
                _ => format!("{field} {} -> {}", plain(&values["from"]), plain(&values["to"])),
            })
            .collect();
        let colon = if fields.is_empty() { "" } else { ": " };
        format!("{sign} {}{colon}{}", self.what, fields.join(", "))
    }

    /// Makes it so.
    pub(super) async fn carry_out(&self, client: &Client) -> Result<()> {
        match &self.deed {
            Deed::Plan(name, change) => {
                client.put_plan(name, &of::<PlanChange>(change)?, None).await?;
            }
            Deed::Workspace(name, change) => {
                let change: WorkspaceChange = of(change)?;
                client.put_workspace(name.as_str(), &change, None).await?;
            }
            Deed::Workflow { name, change } => {
                let change: WorkflowChange<Reference> = of(change)?;
                client.put_workflow(name.as_str(), &change, None).await?;
            }
            Deed::Version { workflow, graph } => {
                let version = NewVersion {
                    workflow: serde_json::value::to_raw_value(graph)?,
                };
                client.add_version(workflow.as_str(), &version, None).await?;
            }
            Deed::NewAlarm(new) => {
                client.set_alarm(&of::<asked::NewAlarm>(new)?).await?;
            }
            Deed::Alarm { before, change } => {
                client.change_alarm(before.id, &of(change)?, None).await?;
            }
            Deed::Trigger { trigger, change } => {
                let change: TriggerChange<Reference> = of(change)?;
                let place = TriggerPlace {
                    task_queue: trigger.task_queue.clone(),
                };
                client
                    .put_trigger(&trigger.project, &trigger.signal, &place, &change)
                    .await?;
            }
            Deed::RemoveWorkflow(name) => client.delete_workflow(name.as_str()).await?,
            Deed::RemoveAlarm(which) => client.cancel_alarm(which.as_str()).await?,
            Deed::RemoveTrigger {
                project,
                name,
                task_queue,
            } => {
                let place = TriggerPlace {
                    task_queue: task_queue.clone(),
                };
                client.delete_trigger(project, name, &place).await?;
            }
        }
        Ok(())
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        value => value.to_string(),
    }
}

/// As it is said on the wire. By its text: JSON that is kept as it was written is not read from a value.
fn of<T: DeserializeOwned>(value: &Value) -> Result<T> {
    Ok(serde_json::from_str(&value.to_string())?)
}
