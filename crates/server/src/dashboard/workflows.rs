//! Workflows: the graph, its versions and what changed between them, policies, and how the last runs went.

#![expect(
    clippy::cast_precision_loss,
    reason = "what is drawn or told to people needs no more digits"
)]

use axum::extract::Path;
use maud::{Markup, html};
use stationmaster_client::wire::{
    ExecutionQuery, ExecutionStatus, PageQuery, Version, Workflow, WorkflowQuery,
};

use super::Answer;
use super::difference::{self, Change};
use super::fields::{Fields, address};
use super::frame::Page;
use super::history::{self, Drawn};
use super::lists::{self, Column};
use super::misspelt::{self, List};
use super::pieces::{
    Filter, act, filters, lamp, nothing, pager, span_of, time, workflow_link, workspace_link,
};
use super::session::Visitor;
use super::views;
use super::{executions, graph, json};

const COLUMNS: [Column<Workflow>; 6] = [
    Column::text("name", "Workflow", |one, other| one.name.cmp(&other.name)),
    Column::text("workspace", "Workspace", |one, other| {
        one.workspace.cmp(&other.workspace)
    }),
    Column::number("version", "Version", |one, other| {
        one.current_version.cmp(&other.current_version)
    }),
    Column::text("queue", "Task queue", |one, other| {
        one.task_queue.cmp(&other.task_queue)
    }),
    Column::text("type", "Type", |one, other| {
        one.workflow_type.cmp(&other.workflow_type)
    }),
    Column::text("changed", "Changed", |one, other| {
        other.updated_at.cmp(&one.updated_at)
    }),
];

const FILTERS: [Filter<'_>; 3] = [
    Filter::Name("workspace", "Workspace", "workspace"),
    Filter::Choice("paused", "Which", &[("yes", "paused")]),
    Filter::Text("search", "In the name"),
];
const LIST: List<'_> = List {
    title: "Workflows",
    path: "/workflows",
    filters: &FILTERS,
};

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let client = &visitor.client;
    let everything = lists::asked(&fields, &["search", "paused"]);
    let query = |limit, cursor| WorkflowQuery {
        workspace_id: fields.reference("workspace"),
        limit: Some(limit),
        cursor,
    };
    let found = if everything {
        let next = |cursor| {
            let (client, query) = (client.clone(), query(lists::CALL, cursor));
            async move { client.workflows(&query).await }
        };
        lists::whole(next).await.map(|whole| (whole, None))
    } else {
        let query = query(100, fields.owned("cursor"));
        client.workflows(&query).await.map(lists::first)
    };
    let (mut whole, onward) = match found {
        Ok(found) => found,
        Err(error) => return misspelt::explain(&visitor, &fields, &LIST, error).await,
    };
    let text = fields.get("search").unwrap_or_default().to_lowercase();
    let only_paused = fields.get("paused").is_some();
    whole
        .items
        .retain(|workflow| workflow.name.contains(&text) && (workflow.paused || !only_paused));
    lists::arrange(&mut whole.items, &fields, &COLUMNS);
    let shown = lists::part(&whole.items, &fields);
    let body = html! {
        header.page { h1 { "Workflows" } }
        (filters("/workflows", &fields, &FILTERS))
        (views::shelf(&visitor, "/workflows").await)
        section #workflows data-live {
            @if shown.is_empty() { (nothing("There is none.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { (lists::heads("/workflows", &fields, &COLUMNS)) }
                tbody { @for workflow in shown { tr data-key=(workflow.id) {
                    td { (workflow_link(Some(&workflow.name), workflow.id)) @if workflow.paused { " " (lamp("wait", "paused")) } }
                    td { (workspace_link(Some(&workflow.workspace), workflow.workspace_id)) }
                    td.number { @if let Some(version) = workflow.current_version { (version) } @else { "none yet" } }
                    td { (workflow.task_queue.as_deref().unwrap_or("–")) }
                    td { (workflow.workflow_type.as_deref().unwrap_or("–")) }
                    td { (time(workflow.updated_at)) }
                } } }
            } } }
            @if everything { (lists::turner("/workflows", &fields, &whole)) }
            @else { (pager("/workflows", &fields, &["workspace"], onward.as_deref())) }
        }
    };
    Ok(Page::new("Workflows", body))
}

pub(super) async fn show(visitor: Visitor, Path(id): Path<String>, fields: Fields) -> Answer {
    let client = &visitor.client;
    let workflow = client.workflow(id.as_str()).await?;
    let versions = client
        .versions(
            workflow.id,
            &PageQuery {
                limit: Some(50),
                cursor: None,
            },
        )
        .await?
        .items;
    let query = ExecutionQuery {
        workspace_id: Some(workflow.workspace_id.into()),
        workflow_definition_id: Some(workflow.id.into()),
        limit: Some(50),
        ..ExecutionQuery::default()
    };
    let runs = client.executions(&query).await?.items;
    let charts = history::draw(
        &visitor,
        &fields,
        Drawn {
            path: &format!("/workflows/{}", workflow.id),
            workspace: Some(workflow.workspace_id.into()),
            workflow: Some(workflow.id.into()),
            server: None,
            limit: None,
        },
    )
    .await?;
    let id = workflow.id.to_string();
    let pairs = [("id", id.as_str())];
    let body = html! {
        header.page {
            h1 { (workflow.name) @if workflow.paused { " " (lamp("wait", "paused")) } }
            @if visitor.operates() {
                div.actions {
                    (act("Run now", "run-now", &pairs, &visitor.here))
                    @if workflow.paused { (act("Resume", "resume-workflow", &pairs, &visitor.here)) }
                    @else { (act("Pause", "pause-workflow", &pairs, &visitor.here)) }
                    @if visitor.administers() { (act("Policies", "change-workflow", &pairs, &visitor.here)) }
                }
            }
        }
        section #graph data-live {
            p { "In " (workspace_link(Some(&workflow.workspace), workflow.workspace_id)) @if let Some(version) = workflow.current_version { ", version " (version) } "." }
            @if let Some(picture) = workflow.graph.as_deref().and_then(|text| graph::draw(text.get(), &[])) { (picture) }
            @else if workflow.graph.is_none() { (nothing("It has no version yet.")) }
        }
        section #policies data-live { h2 { "Policies" } (policies(&workflow)) }
        section #charts data-live { (charts) }
        section #runs data-live {
            h2 { "The last runs" }
            @if runs.is_empty() { (nothing("Nothing of it has run yet.")) }
            @else { (rates(&runs)) (executions::rows(&runs[..runs.len().min(10)])) p { a href=(address("/executions", &[("workflow", id.as_str())])) { "All of them" } } }
        }
        section #versions { h2 { "Versions" } (history(&visitor, &workflow, &versions, &fields)) }
    };
    Ok(Page::new(workflow.name.clone(), body))
}

fn rates(runs: &[stationmaster_client::wire::Execution]) -> Markup {
    let ended = runs.iter().filter(|run| run.completed_at.is_some()).count();
    let well = runs
        .iter()
        .filter(|run| run.status == ExecutionStatus::Completed)
        .count();
    let mut times: Vec<f64> = runs
        .iter()
        .filter_map(|run| {
            Some((run.completed_at?.as_millisecond() - run.started_at?.as_millisecond()) as f64 / 1000.0)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    html! {
        p {
            "Of the last " (runs.len()) ", " (ended) " have ended, " strong { (well) } " of them well"
            @if let Some(middle) = times.get(times.len() / 2) { "; half took no longer than " (span_of(*middle)) }
            "."
        }
    }
}

fn policies(workflow: &Workflow) -> Markup {
    let or = |value: Option<String>| value.unwrap_or_else(|| "the server's setting".to_owned());
    html! {
        dl.facts {
            dt { "Task queue" } dd { (or(workflow.task_queue.clone())) }
            dt { "Workflow type" } dd { (or(workflow.workflow_type.clone())) }
            dt { "Starts that may be refused" } dd { (or(workflow.max_attempts.map(|most| most.to_string()))) }
            dt { "A run may take" } dd { (workflow.run_timeout.map_or_else(|| "as long as it wants".to_owned(), span_of)) }
            dt { "Published" } dd { @if let Some(version) = workflow.published_version { "version " (version) } @else { "the newest" } }
            dt { "Id" } dd { code { (workflow.id) } }
        }
    }
}

fn history(visitor: &Visitor, workflow: &Workflow, versions: &[Version], fields: &Fields) -> Markup {
    let chosen = fields
        .get("version")
        .and_then(|version| version.parse::<i32>().ok());
    let path = format!("/workflows/{}", workflow.id);
    let pair = chosen.and_then(|chosen| versions.iter().position(|version| version.version == chosen));
    let pair = pair.map(|at| (&versions[at], versions.get(at + 1)));
    let id = workflow.id.to_string();
    html! {
        @if versions.is_empty() { p.quiet { "none yet" } }
        ul.versions { @for version in versions { li {
            a href=(format!("{path}?version={}#versions", version.version)) aria-current=[(chosen == Some(version.version)).then_some("true")] { "Version " (version.version) }
            " " span.quiet { (time(version.created_at)) }
            @if workflow.current_version == Some(version.version) { " " (lamp("good", "current")) }
            @else if visitor.administers() { " " (act("Publish", "publish-version", &[("id", &id), ("version", &version.version.to_string())], &path)) }
        } } }
        @if let Some((new, old)) = pair {
            @let old_text = old.map(|old| json::pretty(old.workflow.get())).unwrap_or_default();
            @let new_text = json::pretty(new.workflow.get());
            h3 { "Version " (new.version) @if let Some(old) = old { " against version " (old.version) } }
            pre.difference tabindex="0" { @for (change, line) in difference::lines(&old_text, &new_text) {
                @match change {
                    Change::Same => { span { "  " (line) "\n" } },
                    Change::Gone => { del { "- " (line) "\n" } },
                    Change::New => { ins { "+ " (line) "\n" } },
                }
            } }
        }
    }
}
