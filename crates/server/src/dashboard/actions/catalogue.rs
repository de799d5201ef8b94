//! What is done to workspaces, plans and workflows.

use maud::html;
use stationmaster_client::wire::{PlanChange, WorkflowChange, WorkspaceChange};
use uuid::Uuid;

use super::super::fields::{Fields, segment};
use super::super::frame::Trouble;
use super::super::session::Visitor;
use super::{Deed, Done, Input, Kind, Look, Seen};

pub(super) async fn look(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    let client = &visitor.client;
    let id = fields.need("id")?;
    let look = match name {
        "pause-workspace" | "resume-workspace" => {
            let workspace = client.workspace(id).await?;
            let (title, button, words) = if name == "pause-workspace" {
                (
                    "Pause",
                    "Pause it",
                    "Nothing more is started for it. What runs goes on.",
                )
            } else {
                ("Resume", "Resume it", "What waits is started as there is room.")
            };
            Look::new(
                format!("{title} {}", workspace.name),
                button,
                html! { p { (words) } p.quiet { (workspace.active) " of " (workspace.limit) " slots in use, " (workspace.ready) " ready." } },
            )
        }
        "change-workspace" => {
            let (workspace, tag) = client.with_tag(async |client| client.workspace(id).await).await?;
            let plans = client.plans().await?;
            let words = html! {
                p { "Its plan is " (workspace.plan) ", its limit " (workspace.limit) "; " (workspace.active) " slots are in use. A lower limit ends nothing that runs." }
                dl.facts { @for plan in &plans { dt { (plan.name) } dd { (plan.max_concurrent) " at once, weight " (plan.weight) } } }
            };
            let own = workspace.max_concurrent.map(|limit| limit.to_string());
            Look::new(format!("Change {}", workspace.name), "Change it", words)
                .bind("tag", tag.unwrap_or_default())
                .ask(Input::new(
                    Kind::Choice(plans.into_iter().map(|plan| plan.name).collect()),
                    "plan",
                    "Plan",
                    &workspace.plan,
                ))
                .ask(Input::new(
                    Kind::Number,
                    "limit",
                    "A limit of its own (empty: the plan's)",
                    own.unwrap_or_default(),
                ))
        }
        "pause-workflow" | "resume-workflow" => {
            let workflow = client.workflow(id).await?;
            let (title, button, words) = if name == "pause-workflow" {
                (
                    "Pause",
                    "Pause it",
                    "Nothing more of it is started. What runs goes on.",
                )
            } else {
                (
                    "Resume",
                    "Resume it",
                    "What waits of it is started as there is room.",
                )
            };
            Look::new(
                format!("{title} {}", workflow.name),
                button,
                html! { p { (words) } },
            )
        }
        "change-workflow" => {
            let (workflow, tag) = client.with_tag(async |client| client.workflow(id).await).await?;
            let words = html! { p { "What waits and what comes goes by the new policies; what runs keeps those that it was started with. A field that has a value can be changed, and not be emptied again." } };
            Look::new(format!("Policies of {}", workflow.name), "Change them", words)
                .bind("tag", tag.unwrap_or_default())
                .ask(Input::new(
                    Kind::Text,
                    "task_queue",
                    "Task queue (empty: the server's setting)",
                    workflow.task_queue.unwrap_or_default(),
                ))
                .ask(Input::new(
                    Kind::Text,
                    "workflow_type",
                    "Workflow type (empty: the server's setting)",
                    workflow.workflow_type.unwrap_or_default(),
                ))
                .ask(Input::new(
                    Kind::Number,
                    "max_attempts",
                    "Starts that may be refused (empty: the server's setting)",
                    workflow
                        .max_attempts
                        .map(|most| most.to_string())
                        .unwrap_or_default(),
                ))
                .ask(Input::new(
                    Kind::Text,
                    "run_timeout",
                    "Seconds that a run may take (empty: as long as it wants)",
                    workflow
                        .run_timeout
                        .map(|seconds| seconds.to_string())
                        .unwrap_or_default(),
                ))
        }
        "publish-version" => {
            let (workflow, tag) = client.with_tag(async |client| client.workflow(id).await).await?;
            let version = fields.must::<i32>("version")?;
            let words = html! { p { "New items of " strong { (workflow.name) } " get version " (version) @if let Some(current) = workflow.current_version { " instead of " (current) } ". What is in the queue keeps the version that it has." } };
            Look::new(format!("Publish version {version}"), "Publish it", words)
                .bind("tag", tag.unwrap_or_default())
                .bind("version", version)
        }
        "change-plan" => {
            let plans = client.plans().await?;
            let plan = plans.into_iter().find(|plan| plan.name == id);
            let plan = plan.ok_or_else(|| Trouble::not_found(format!("there is no plan {id}")))?;
            Look::new(
                format!("Change plan {id}"),
                "Change it",
                html! { p { "The limits of its workspaces follow at once; what runs goes on." } },
            )
            .ask(Input::new(
                Kind::Number,
                "limit",
                "Executions at once",
                plan.max_concurrent,
            ))
            .ask(Input::new(
                Kind::Text,
                "weight",
                "Weight, its share when there is not enough",
                plan.weight,
            ))
        }
        _ => return Err(Trouble::not_found(name)),
    };
    Ok(look.bind("id", id))
}

pub(super) async fn carry(visitor: &Visitor, name: &str, fields: &Fields) -> Deed {
    let client = &visitor.client;
    let id = fields.need("id")?;
    let tag = fields.get("tag");
    Ok(match name {
        "pause-workspace" => Done::said(format!("{} is paused.", client.pause_workspace(id).await?.name)),
        "resume-workspace" => Done::said(format!("{} goes on.", client.resume_workspace(id).await?.name)),
        "change-workspace" => {
            let change = WorkspaceChange {
                plan: fields.owned("plan"),
                max_concurrent: Some(fields.parse("limit")?),
                ..WorkspaceChange::default()
            };
            let changed = client.put_workspace(id, &change, tag).await?;
            Done::said(format!("{} may run {} at once.", changed.name, changed.limit))
                .at(format!("/workspaces/{}", segment(&changed.name)))
        }
        "pause-workflow" => Done::said(format!("{} is paused.", client.pause_workflow(id).await?.name)),
        "resume-workflow" => Done::said(format!("{} goes on.", client.resume_workflow(id).await?.name)),
        "change-workflow" => {
            let workflow = client.workflow(id).await?;
            let change = WorkflowChange::<Uuid> {
                task_queue: fields.owned("task_queue"),
                workflow_type: fields.owned("workflow_type"),
                max_attempts: fields.parse("max_attempts")?,
                run_timeout: Some(fields.parse("run_timeout")?),
                ..WorkflowChange::of(workflow.workspace_id)
            };
            let changed = client.put_workflow(workflow.id, &change, tag).await?;
            Done::said(format!("The policies of {} are changed.", changed.name))
        }
        "publish-version" => {
            let workflow = client.workflow(id).await?;
            let change = WorkflowChange::<Uuid> {
                published_version: Some(fields.must("version")?),
                ..WorkflowChange::of(workflow.workspace_id)
            };
            let changed = client.put_workflow(workflow.id, &change, tag).await?;
            Done::said(format!(
                "New items get version {}.",
                changed.current_version.unwrap_or_default()
            ))
        }
        "change-plan" => {
            let change = PlanChange {
                max_concurrent: fields.must("limit")?,
                weight: fields.parse("weight")?,
            };
            let changed = client.put_plan(id, &change, None).await?;
            Done::said(format!(
                "Workspaces of {} may run {} at once.",
                changed.name, changed.max_concurrent
            ))
        }
        _ => return Err(Trouble::not_found(name)),
    })
}
