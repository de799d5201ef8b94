//! The first page: what needs a person, and then what runs.

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Alarm, ExecutionQuery, ExecutionStatus, FailureKind, ItemStatus, Obstacle, OpenBreaker, Order, Overview,
    OverviewQuery, QueueOrder, QueueQuery, Server, ServerEnd, Waiting, Workspace,
};
use uuid::Uuid;

use super::Answer;
use super::fields::{Fields, address, segment};
use super::frame::Page;
use super::history::{self, Drawn};
use super::misspelt::{self, List};
use super::pieces::{
    Filter, counted, execution_lamp, execution_link, filters, lamp, many, nothing, since, time, took,
    workflow_link, workspace_link,
};
use super::session::Visitor;
use super::{runbooks, strays};

/// How far back charts go.
const TIMES: [(&str, &str); 5] = [
    ("15m", "15 min"),
    ("1h", "1 h"),
    ("6h", "6 h"),
    ("24h", "24 h"),
    ("7d", "7 d"),
];
/// Workspaces shown here; the others are a click away.
const WORKSPACES: usize = 12;
/// Fires to come shown here.
const FIRES: usize = 8;
/// An alarm that has not fired so long after its time is late, and so is an item that has not started.
const LATE: SignedDuration = SignedDuration::from_secs(30);

pub(super) async fn show(visitor: Visitor, fields: Fields) -> Answer {
    let client = &visitor.client;
    let overview = client.overview(&OverviewQuery { minutes: Some(1) }).await?;
    let charts = history::draw(
        &visitor,
        &fields,
        Drawn {
            path: "/",
            workspace: fields.reference("workspace"),
            workflow: fields.reference("workflow"),
            server: fields.reference("server"),
            limit: None,
        },
    )
    .await;
    let mut cuts = vec![
        Filter::Name("workspace", "Workspace", "workspace"),
        Filter::Name("workflow", "Workflow", "workflow"),
        Filter::Choice("since", "Time", &TIMES),
    ];
    // What a server does, it does for everybody.
    if visitor.sees_all {
        cuts.insert(2, Filter::Name("server", "or server", "server"));
    }
    let charts = match charts {
        Ok(charts) => charts,
        Err(error) => {
            let list = List {
                title: "Overview",
                path: "/",
                filters: &cuts,
            };
            let words = misspelt::unknown(&visitor, &fields, &list, &error).await?;
            words.ok_or(error)?
        }
    };
    let ready = client.readiness().await.err().map(|error| error.to_string());
    let halts = Halts {
        held_up: held_up(client, &overview.workspaces).await,
        stalled: stalled(client, &overview.workspaces).await,
    };
    let body = html! {
        h1.visually-hidden { "Overview" }
        section #needs data-live { (needs(&overview, ready.as_deref(), &halts)) }
        section #numbers data-live aria-label="Numbers of now" { (numbers(&overview)) }
        section #charts data-live { (charts) }
        details.cut open[["workspace", "workflow", "server"].iter().any(|name| fields.get(name).is_some())] {
            summary { @if visitor.sees_all { "Charts of one workspace, workflow or server" } @else { "Charts of one workspace or workflow" } }
            (filters("/", &fields, &cuts))
        }
        div.columns {
            section #slots data-live {
                h2 { "Workspaces" }
                (workspaces(&overview.workspaces))
            }
            section #fires data-live {
                h2 { "Coming fires" }
                (fires(&overview.coming))
            }
        }
        section #newest data-live {
            h2 { "Newest executions" }
            (newest(&overview))
        }
        section #servers data-live {
            h2 { "Servers" }
            (servers(&overview.servers))
        }
    };
    Ok(Page::new("Overview", body))
}

/// What a person should look at, the worst first; or the good news.
fn needs(overview: &Overview, not_ready: Option<&str>, halts: &Halts<'_>) -> Markup {
    let now = Timestamp::now();
    let numbers = &overview.overview;
    let lost: Vec<&Server> = overview.servers.iter().filter(|server| !server.alive).collect();
    let idle = overview
        .servers
        .iter()
        .filter(|server| server.alive && !server.claiming)
        .count();
    let late: Vec<&Alarm> = overview
        .coming
        .iter()
        .filter(|alarm| alarm.next_fire_at.is_some_and(|at| now.duration_since(at) > LATE))
        .collect();
    let failing = &overview.failing;
    let paused: Vec<&Workspace> = overview
        .workspaces
        .iter()
        .filter(|workspace| workspace.paused && workspace.ready > 0)
        .collect();
    let stuck: Vec<&Workspace> = overview
        .workspaces
        .iter()
        .filter(|workspace| !workspace.paused && workspace.limit == 0 && workspace.ready > 0)
        .collect();
    let full: Vec<&Workspace> = overview.workspaces.iter().filter(|one| is_full(one)).collect();
    let away: Vec<&Server> = overview
        .servers
        .iter()
        .filter(|server| server.alive && server.engine_away_at.is_some())
        .collect();
    let silent = silent(&overview.breakers);
    let groups = &overview.failures;
    let dead: i64 = groups
        .iter()
        .filter(|group| group.kind == FailureKind::Signal)
        .map(|group| group.count)
        .sum();
    let quiet = not_ready.is_none()
        && numbers.engine_up
        && away.is_empty()
        && silent.is_empty()
        && numbers.servers > 0
        && lost.is_empty()
        && overview.lost.is_empty()
        && halts.held_up.is_empty()
        && halts.stalled.is_empty()
        && idle == 0
        && groups.is_empty()
        && late.is_empty()
        && failing.is_empty()
        && paused.is_empty()
        && overview.held.is_empty()
        && overview.strays.is_empty()
        && stuck.is_empty();
    html! {
        h2 { "What needs you" }
        ul.needs {
            @if numbers.servers == 0 { (need("bad", "/servers", "No server takes work", html! { "start one: " code { "stationmaster serve" } " · " (runbooks::link("no-server")) })) }
            @if let Some(words) = not_ready { (need("bad", "/health", "This server is not ready", html! { (words) " · " (runbooks::link("not-ready")) })) }
            @for server in away.iter().take(3) { (need("bad", "/servers", &format!("Engine {} does not answer {}", server.engine, server.name), html! { "since " (maybe(server.engine_away_at)) "; what it would start is held back until it does · " (runbooks::link("engine-away")) })) }
            @if !numbers.engine_up && numbers.servers > 0 && away.is_empty() { (need("bad", "/servers", "An engine does not answer", html! { "claims are held back until it does · " (runbooks::link("engine-away")) })) }
            @for (target, since, servers) in silent.iter().take(5) { (need("bad", &address("/alarms", &[("search", aimed_at(target))]), &format!("Target {target} does not answer"), html! { "since " (time(*since)) ", seen by " (servers.join(", ")) "; its wakes are held back until it does · " (runbooks::link("target-open")) })) }
            @for server in &lost { (need("bad", "/servers", &format!("Server {} is lost", server.name), html! { "last heard of " (time(server.seen_at)) " · " (runbooks::link("server-lost")) })) }
            @for server in overview.lost.iter().take(3) { (need("warn", "/servers?all=yes", &format!("Server {} was lost and is not back", server.name), html! { "last heard of " (time(server.seen_at)) @if let Some(by) = &server.recovered_by { "; what it had in hand went to " (by) } ". This line is gone when it is back, or after an hour · " (runbooks::link("server-down")) })) }
            @for (workspace, execution, obstacle) in &halts.held_up { (need("bad", &format!("/executions/{execution}"), &format!("{} does not go on", workspace.name), html! { (obstacle) "; all " (workspace.limit) " slots are held, and " (counted(workspace.ready, 10_000)) " wait" @if matches!(obstacle, Obstacle::NoWorker { .. }) { " · " (runbooks::link("no-workers")) } })) }
            @for (workspace, item, since) in &halts.stalled { (need("bad", &format!("/queue/{item}"), &format!("{} waits although it has room", workspace.name), html! { "the oldest since " (time(*since)) ", with nothing in its way but the servers: they have too much to do, or somebody's transaction holds a row of it · " (runbooks::link("dispatch-stalled")) })) }
            @if idle > 0 { (need("warn", "/servers", &format!("{} take no new work", many(idle, "server")), html! { "they finish what they have" })) }
            @for group in groups.iter().take(6) {
                (need("bad", &format!("/failures/{}", group.id), &format!("{} × {}", counted(group.count, 10_000), first_line(&group.message)),
                    html! { (group.kind) " · " (group.workspace.as_deref().unwrap_or("no workspace")) @if let Some(workflow) = &group.workflow { " · " (workflow) } " · last " (time(group.last_at)) }))
            }
            @if groups.len() > 6 { (need("bad", "/failures", &many(groups.len() - 6, "more group of failures").replace("group of failuress", "groups of failures"), html! {})) }
            @if !overview.strays.is_empty() { (need("bad", strays::PATH, &format!("{} on the engine that no row tells of", counted_runs(overview.strays.len())), html! { "lost with a failover, or younger than a restored backup: look at each, and let it end or end it · " (runbooks::link("stray-runs")) })) }
            @if dead > 0 { (need("warn", "/signals?status=DEAD", &many(dead, "dead letter"), html! { "signals that could not be routed · " (runbooks::link("dead-letters")) })) }
            @for alarm in late.iter().take(3) { (need("bad", &format!("/alarms/{}", alarm.id), &format!("Alarm {} is late", called(alarm)), html! { "due " (maybe(alarm.next_fire_at)) " · " (runbooks::link("alarms-late")) })) }
            @for alarm in failing.iter().take(3) { (need("warn", &format!("/alarms/{}", alarm.id), &format!("Alarm {} fails", called(alarm)), html! { (many(alarm.failed_in_a_row, "occurrence")) " in a row" @if let Some(error) = &alarm.last_error { ": " (first_line(error)) } " · " (runbooks::link("wakes-fail")) })) }
            @for workspace in stuck.iter().take(3) { (need("bad", &format!("/workspaces/{}", segment(&workspace.name)), &format!("{} can run nothing", workspace.name), html! { "its limit is 0, and " (counted(workspace.ready, 10_000)) " wait" })) }
            @for workspace in paused.iter().take(3) { (need("warn", &format!("/workspaces/{}", segment(&workspace.name)), &format!("{} is paused", workspace.name), html! { (counted(workspace.ready, 10_000)) " wait" })) }
            @for held in overview.held.iter().take(3) { (need("warn", &format!("/workflows/{}", held.workflow_definition_id), &format!("{} of {} is paused", held.workflow, held.workspace), html! { (counted(held.held, 10_000)) " wait for it" })) }
            @if quiet { li.good { span.lamp.good { "All in order" } span.quiet { (many(numbers.servers, "server")) " at work, nothing failed that nobody has looked at" } } }
            @if !full.is_empty() {
                (need("busy", "/workspaces?state=full", &format!("{} full", many(full.len(), "workspace")),
                    html! { @for (at, workspace) in full.iter().take(4).enumerate() { @if at > 0 { ", " } a href=(format!("/workspaces/{}", segment(&workspace.name))) { (workspace.name) } " (" (workspace.active) " of " (workspace.limit) ", " (counted(workspace.ready, 10_000)) " wait)" } }))
            }
        }
    }
}

/// Workspaces that do not go on, for reasons that no limit and no pause explains.
struct Halts<'a> {
    held_up: Vec<HeldUp<'a>>,
    stalled: Vec<Stalled<'a>>,
}

/// A workspace with room, an item that could have started, and since when.
type Stalled<'a> = (&'a Workspace, Uuid, Timestamp);

/// Of the first workspaces with room, those in which something waits that should have been started long ago.
async fn stalled<'a>(client: &Client, workspaces: &'a [Workspace]) -> Vec<Stalled<'a>> {
    let has_room = |one: &&Workspace| !one.paused && one.active < one.limit && one.ready > 0;
    let asked = workspaces
        .iter()
        .filter(has_room)
        .take(3)
        .map(|workspace| async move {
            let oldest = QueueQuery {
                workspace_id: Some(workspace.id.into()),
                status: Some(ItemStatus::Pending),
                order: Some(QueueOrder::Oldest),
                limit: Some(20),
                ..QueueQuery::default()
            };
            let now = Timestamp::now();
            let items = client.queue(&oldest).await.ok()?.items.into_iter();
            let could = items.map(|item| {
                (
                    item.id,
                    item.created_at.max(item.run_at.unwrap_or(item.created_at)),
                )
            });
            let overdue: Vec<(Uuid, Timestamp)> =
                could.filter(|(_, at)| now.duration_since(*at) > LATE).collect();
            if overdue.is_empty() {
                return None;
            }
            // Those of a workflow that is paused wait for somebody, and others for the engine.
            let ids: Vec<Uuid> = overdue.iter().map(|(id, _)| *id).collect();
            let waits = client.waits(&ids).await.ok()?.items;
            let is_free = |id: &Uuid| {
                let reasons = waits
                    .iter()
                    .find(|wait| wait.id == *id)
                    .map(|wait| &wait.reasons[..]);
                matches!(reasons, Some([Waiting::Queued { .. }]))
            };
            let (id, since) = overdue.into_iter().find(|(id, _)| is_free(id))?;
            Some((workspace, id, since))
        });
    join_all(asked).await.into_iter().flatten().collect()
}

/// A workspace that is full, its oldest run, and what keeps that from going on.
type HeldUp<'a> = (&'a Workspace, Uuid, Obstacle);

fn is_full(workspace: &Workspace) -> bool {
    workspace.limit > 0 && workspace.active >= workspace.limit && workspace.ready > 0
}

/// Of the first workspaces that are full, those whose oldest run cannot go on. Nobody else would tell: slots that are held look like work.
async fn held_up<'a>(client: &Client, workspaces: &'a [Workspace]) -> Vec<HeldUp<'a>> {
    let full = workspaces.iter().filter(|one| is_full(one)).take(3);
    let asked = full.map(|workspace| async move {
        let oldest = ExecutionQuery {
            workspace_id: Some(workspace.id.into()),
            status: Some(ExecutionStatus::Running),
            order: Some(Order::Oldest),
            limit: Some(1),
            ..ExecutionQuery::default()
        };
        let oldest = client.executions(&oldest).await.ok()?.items.pop()?;
        let (execution, obstacle) = super::workspaces::held_up(client, oldest.id).await?;
        Some((workspace, execution, obstacle))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// The overview tells of so many strays and no more.
fn counted_runs(told: usize) -> String {
    if told < 20 {
        many(told, "run")
    } else {
        format!("{told} runs or more")
    }
}

/// Targets that do not answer, since when, and whom: several servers may have found out.
fn silent(breakers: &[OpenBreaker]) -> Vec<(&str, Timestamp, Vec<&str>)> {
    let mut silent: Vec<(&str, Timestamp, Vec<&str>)> = Vec::new();
    for one in breakers {
        match silent.iter_mut().find(|(target, ..)| *target == one.target) {
            // The one that has been silent longest comes first.
            Some((_, _, servers)) => servers.push(&one.server),
            None => silent.push((&one.target, one.opened_at, vec![&one.server])),
        }
    }
    silent
}

/// What finds the alarms that go there; those that go to the router name no target, so nothing narrows them.
fn aimed_at(target: &str) -> &str {
    if target == "router" { "" } else { target }
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
fn need(class: &str, to: &str, words: &str, more: Markup) -> Markup {
    html! { li.(class) { a href=(to) { (lamp(class, words)) } span.quiet { (more) } } }
}

fn maybe(at: Option<Timestamp>) -> Markup {
    html! { @if let Some(at) = at { (time(at)) } }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 100 {
        return line.to_owned();
    }
    line.chars().take(99).chain(['…']).collect()
}

/// What people call an alarm.
pub(super) fn called(alarm: &Alarm) -> String {
    let label = Some(alarm.label.clone()).filter(|label| !label.is_empty());
    alarm
        .name
        .clone()
        .or(label)
        .unwrap_or_else(|| super::pieces::short(alarm.id))
}

fn numbers(overview: &Overview) -> Markup {
    let numbers = &overview.overview;
    let tile = |to: &str, value: String, word: &str, class: &str| {
        html! { a.tile.(class) href=(to) { strong { (value) } span { (word) } } }
    };
    html! {
        div.tiles {
            (tile("/queue?status=PENDING", numbers.waiting.to_string(), "waiting", "wait"))
            (tile("/executions?status=STARTING", numbers.starting.to_string(), "starting", "busy"))
            (tile("/executions?status=RUNNING", numbers.running.to_string(), "running", "busy"))
            (tile("/executions?status=COMPLETED", numbers.completed_last_minute.to_string(), "completed a minute", "good"))
            (tile("/executions?status=FAILED", numbers.failed_last_minute.to_string(), "failed a minute", if numbers.failed_last_minute > 0 { "bad" } else { "off" }))
            (tile("/failures", counted(numbers.failures, 10_000), "failures to look at", if numbers.failures > 0 { "bad" } else { "off" }))
        }
    }
}

/// Slots as slots.
pub(super) fn slots(workspace: &Workspace) -> Markup {
    let (limit, active) = (workspace.limit.max(0), workspace.active.max(0));
    let shown = limit.max(active).min(40);
    html! {
        span.slots role="img" aria-label=(format!("{active} of {limit} slots in use")) {
            @for slot in 0..shown { span.slot.taken[slot < active].over[slot >= limit] {} }
            @if limit.max(active) > shown { span.quiet { "+" (limit.max(active) - shown) } }
        }
    }
}

fn workspaces(all: &[Workspace]) -> Markup {
    let mut shown: Vec<&Workspace> = all.iter().collect();
    shown.sort_by_key(|workspace| (-workspace.ready.min(1), -workspace.active, workspace.name.clone()));
    html! {
        @if shown.is_empty() { (nothing("There is no workspace yet. To make one: stationmaster workspaces create NAME")) }
        @else {
            table.rows {
                thead { tr { th { "Workspace" } th { "Slots" } th.number { "In use" } th.number { "Waiting" } } }
                tbody {
                    @for workspace in shown.iter().take(WORKSPACES) {
                        tr data-key=(workspace.id) {
                            td { (workspace_link(Some(&workspace.name), workspace.id)) @if workspace.paused { " " (lamp("wait", "paused")) } }
                            td { (slots(workspace)) }
                            td.number { (workspace.active) " of " (workspace.limit) }
                            td.number { (counted(workspace.ready, 10_000)) }
                        }
                    }
                }
            }
            @if all.len() > WORKSPACES { p { a href="/workspaces" { "All workspaces" } } }
        }
    }
}

fn fires(alarms: &[Alarm]) -> Markup {
    let coming: Vec<&Alarm> = alarms
        .iter()
        .filter(|alarm| alarm.next_fire_at.is_some())
        .take(FIRES)
        .collect();
    html! {
        @if coming.is_empty() { (nothing("No alarm is set.")) }
        @else {
            ol.fires {
                @for alarm in coming {
                    li {
                        (maybe(alarm.next_fire_at)) " "
                        a href=(format!("/alarms/{}", alarm.id)) { (called(alarm)) } " "
                        span.quiet { (alarm.workspace.as_deref().unwrap_or_default()) @if let Some(words) = &alarm.description { " · " (words) } }
                    }
                }
            }
        }
    }
}

fn newest(overview: &Overview) -> Markup {
    html! {
        @if overview.executions.is_empty() { (nothing("Nothing has run yet.")) }
        @else {
            div.scroll tabindex="0" { table.rows.cards {
                thead { tr { th { "Execution" } th { "Workspace" } th { "Workflow" } th { "Status" } th { "Started" } th { "Took" } } }
                tbody {
                    @for execution in &overview.executions {
                        tr data-key=(execution.id) {
                            td { (execution_link(execution.id)) }
                            td { (workspace_link(execution.workspace.as_deref(), execution.workspace_id)) }
                            td { (workflow_link(execution.workflow.as_deref(), execution.workflow_definition_id)) }
                            td { (execution_lamp(execution.status)) }
                            td { (maybe(execution.started_at)) }
                            td { (took(execution.started_at, execution.completed_at)) }
                        }
                    }
                }
            } }
        }
    }
}

/// How a server stands, in a lamp.
pub(super) fn server_lamp(server: &Server) -> Markup {
    if let Some(end) = server.ended {
        let class = if end == ServerEnd::Lost { "bad" } else { "off" };
        return lamp(class, end.as_str());
    }
    if server.alive && server.draining {
        return lamp("wait", "draining");
    }
    match (server.alive, server.engine_up, server.claiming) {
        (false, ..) => lamp("bad", "lost"),
        (_, false, _) => lamp("bad", "engine away"),
        (_, _, false) => lamp("wait", "takes no new work"),
        _ => lamp("good", "ready"),
    }
}

fn servers(servers: &[Server]) -> Markup {
    html! {
        @if servers.is_empty() { (nothing("No server is known.")) }
        @else {
            ul.servers { @for server in servers {
                li { (server_lamp(server)) " " strong { (server.name) } " " span.quiet { (server.engine) " · " (server.version) " · up for " (since(server.started_at)) } }
            } }
        }
    }
}
