//! What is answered: an example of each shape, which has gone through the type of the wire, so it holds what an answer holds and nothing else.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stationmaster_client::wire;

use super::{ID, RUN, TIME};

const LATER: &str = "2026-03-01T10:05:00Z";
const GROUP: &str = "3f9a1c2b7d4e5f6";

/// As the type of the wire writes it; nothing when it is not of the type, which a test would notice.
fn of<T: Serialize + DeserializeOwned>(value: Value) -> Option<Value> {
    let value: T = serde_json::from_value(value).ok()?;
    serde_json::to_value(value).ok()
}

/// An example of a shape, by its name in the document.
pub(super) fn example(shape: &str) -> Option<Value> {
    if let Some(thing) = shape.strip_prefix("Page_") {
        return Some(json!({ "items": [example(thing)?], "next_cursor": null }));
    }
    match shape {
        "QueueItem" | "QueueItemDetails" | "Enqueued" | "BulkEnqueued" | "Cancelled" | "BulkAnswer"
        | "History" | "Step" | "ItemCounts" | "Waits" => queue(shape),
        "Execution" | "ExecutionCounts" | "ExecutionNodes" | "Stray" | "FailureGroup" | "Failure"
        | "Operation" => execution(shape),
        "Workspace" | "Workflow" | "Version" | "VersionMade" | "GraphChecked" | "Plan" | "Plans"
        | "NamesFound" => catalogue(shape),
        "Alarm" | "AlarmMade" | "AlarmDetails" | "NextFires" | "Calendar" | "Backfilled" | "FiredByHand"
        | "AlarmEvent" | "Occurrence" => alarm(shape),
        "Signal" | "SignalSent" | "BulkSent" | "Trigger" | "Dispatcher" | "DispatcherEvent"
        | "Reconciled" => signal(shape),
        "Lock" | "Locks" | "Acquired" | "UnlockAnswer" | "LockExtended" => lock(shape),
        _ => whole(shape),
    }
}

fn queue(shape: &str) -> Option<Value> {
    let item = json!({
        "id": ID, "workspace_id": ID, "workspace": "shop", "workflow_definition_id": ID, "workflow": "import", "execution_id": null,
        "status": "PENDING", "priority": 5, "run_at": null, "attempt_count": 0, "recovery_count": 0, "created_at": TIME,
        "claimed_at": null, "dispatched_at": null, "last_error": null, "outcome": null, "waits_for": "limit", "idempotency_key": null,
        "correlation_id": null, "enqueued_by": "ci", "input": { "order": 17 },
    });
    let step = json!({ "at": TIME, "event": "claimed", "actor": "server", "server": "one", "execution_id": ID, "detail": null });
    match shape {
        "QueueItem" => of::<wire::QueueItem>(item),
        "QueueItemDetails" => {
            let limit = json!({ "reason": "limit", "limit": 1, "active": 1, "holders": [ID], "position": 1 });
            let holder = json!({ "execution_id": ID, "queue_item_id": ID, "workflow_definition_id": ID, "workflow": "import",
                                 "server_id": ID, "server": "one", "since": TIME });
            let expected = json!({ "at": TIME, "how": "0 before it, 1 slot, and 12.0 s for each: the mean of the last 50 executions of the workspace" });
            of::<wire::QueueItemDetails>(
                json!({ "item": item, "waiting": limit, "reasons": [limit], "position": 1,
                                                 "holders": [holder], "expected": expected }),
            )
        }
        "Enqueued" => of::<wire::Enqueued>(json!({ "id": ID, "duplicate": false })),
        "BulkEnqueued" => of::<wire::BulkEnqueued>(json!({ "items": [{ "id": ID, "duplicate": false }] })),
        "Cancelled" => of::<wire::Cancelled>(json!({ "id": ID, "result": "cancelled" })),
        "BulkAnswer" => of::<wire::BulkAnswer>(
            json!({ "items": 56, "more": false, "as_of": TIME, "sample": [ID], "dry_run": true }),
        ),
        "ItemCounts" => of::<wire::ItemCounts>(
            json!({ "items": [{ "status": "PENDING", "count": 14, "more": false }, { "status": "DISPATCHED", "count": 1_000, "more": true }] }),
        ),
        "Waits" => of::<wire::Waits>(json!({ "counted": 10_000,
            "items": [{ "id": ID, "reasons": [{ "reason": "queued", "position": 3 }], "position": 3 }] })),
        "History" => of::<wire::History>(json!({ "items": [step] })),
        _ => of::<wire::Step>(step),
    }
}

fn execution(shape: &str) -> Option<Value> {
    match shape {
        "Execution" => of::<wire::Execution>(json!({
            "id": ID, "queue_item_id": ID, "workspace_id": ID, "workspace": "shop", "workflow_definition_id": ID, "workflow": "import",
            "workflow_definition_version_id": ID, "status": "COMPLETED", "engine": "temporal", "run_id": ID, "claimed_at": TIME,
            "started_at": TIME, "closed_at": LATER, "completed_at": LATER, "attempts": 0, "recoveries": 0, "reason": null, "error": null,
            "superseded_at": null, "obstacle": null, "input": { "order": 17 }, "output": { "rows": 12 }, "output_omitted": null,
        })),
        "ExecutionCounts" => of::<wire::ExecutionCounts>(
            json!({ "items": [{ "status": "RUNNING", "count": 3, "more": false }, { "status": "COMPLETED", "count": 1_000, "more": true }] }),
        ),
        "ExecutionNodes" => of::<wire::ExecutionNodes>(json!({
            "graph": { "nodes": [{ "id": "ask", "type": "http", "url": "https://shop.example/import" }, { "id": "rest", "type": "wait", "seconds": 30 }],
                       "edges": [{ "from": "ask", "to": "rest" }] },
            "nodes": [{ "id": "ask", "kind": "http", "state": "finished" }, { "id": "rest", "kind": "wait", "state": "under_way", "until": LATER }],
        })),
        "Stray" => of::<wire::Stray>(json!({
            "execution_id": ID, "run_id": RUN, "workspace_id": ID, "workspace": "shop", "started_at": TIME, "found_at": LATER,
            "end_requested_at": null, "end_requested_by": null,
        })),
        "FailureGroup" => of::<wire::FailureGroup>(json!({
            "id": GROUP, "kind": "execution", "workspace_id": ID, "workspace": "shop", "workflow_definition_id": ID,
            "workflow": "import", "alarm_id": null, "count": 8, "first_at": TIME, "last_at": LATER, "message": "order 17 not found",
            "queue_item_id": ID, "execution_id": ID, "scheduled_for": null, "signal_id": null,
        })),
        "Failure" => of::<wire::Failure>(json!({
            "group_id": GROUP, "kind": "execution", "workspace_id": ID, "workspace": "shop", "workflow_definition_id": ID,
            "workflow": "import", "at": LATER, "message": "order 17 not found", "queue_item_id": ID, "execution_id": ID, "alarm_id": null,
            "scheduled_for": null, "signal_id": null, "set_aside_at": null, "set_aside_by": null, "note": null,
        })),
        _ => of::<wire::Operation>(json!({
            "id": ID, "kind": "cancel_queue", "filter": { "workspace_id": ID, "created_before": TIME, "all": false }, "workspaces": [ID],
            "status": "RUNNING", "as_of": TIME, "total": 56_000, "total_is_least": false, "done": 20_000, "unchanged": null,
            "created_at": TIME, "created_by": "token:ci:0190a1b2-7c3d-7000-8000-5e6f70819203", "started_at": TIME, "server": "one",
            "ended_at": null, "ended_by": null, "error": null,
        })),
    }
}

fn catalogue(shape: &str) -> Option<Value> {
    let graph = json!({ "nodes": [{ "id": "ask", "type": "http", "url": "https://shop.example/import" }] });
    let plan = json!({ "name": "PRO", "max_concurrent": 5, "weight": 1.0 });
    match shape {
        "Workspace" => of::<wire::Workspace>(json!({
            "id": ID, "name": "shop", "plan": "PRO", "max_concurrent": null, "limit": 5, "active": 2, "ready": 14, "weight": 1.0,
            "paused": false, "created_at": TIME, "updated_at": TIME,
        })),
        "Workflow" => of::<wire::Workflow>(json!({
            "id": ID, "workspace_id": ID, "workspace": "shop", "name": "import", "task_queue": null, "workflow_type": null,
            "max_attempts": null, "run_timeout": 1800.0, "published_version": null, "current_version": 2, "graph": graph, "paused": false,
            "created_at": TIME, "updated_at": TIME,
        })),
        "Version" => {
            of::<wire::Version>(json!({ "id": ID, "version": 2, "workflow": graph, "created_at": TIME }))
        }
        "GraphChecked" => of::<wire::GraphChecked>(json!({ "nodes": ["ask", "rest"] })),
        "VersionMade" => of::<wire::VersionMade>(json!({ "id": ID, "version": 2 })),
        "Plan" => of::<wire::Plan>(plan),
        "Plans" => of::<wire::Plans>(json!({ "items": [plan] })),
        _ => of::<wire::NamesFound>(
            json!({ "items": [{ "id": ID, "name": "shop", "workspace": "shop" }], "near": [] }),
        ),
    }
}

fn alarm(shape: &str) -> Option<Value> {
    let alarm = json!({
        "id": ID, "workspace_id": ID, "workspace": "shop", "name": "nightly", "label": "the nightly import", "kind": "cron",
        "status": "active", "cron_expr": "0 2 * * *", "timezone": "Europe/Zurich", "description": "at 02:00", "civil_at": null,
        "fire_at": null, "next_fire_at": "2026-03-02T01:00:00Z", "last_fired_at": "2026-03-01T01:00:00Z", "target_url": null,
        "message": "Begin", "payload": null, "user_id": null, "conversation_id": null, "idempotency_key": null, "max_failures": null,
        "failure_count": 0, "failed_in_a_row": 0, "last_error": null, "misfire": "coalesce", "catch_up": 10, "misfire_window": null,
        "overlap": "allow", "dst": "vixie", "jitter": 0.0, "start_at": null, "end_at": null, "pause_after": null, "set_by": "ci",
        "created_at": TIME, "updated_at": TIME,
    });
    let fire = json!({ "at": "2026-03-02T01:00:00Z", "local": "2026-03-02T02:00:00+01:00[Europe/Zurich]", "note": null });
    match shape {
        "Alarm" => of::<wire::Alarm>(alarm),
        "AlarmMade" => {
            of::<wire::AlarmMade>(json!({ "alarm": alarm, "upcoming": [fire], "duplicate": false }))
        }
        "AlarmDetails" => of::<wire::AlarmDetails>(json!({ "alarm": alarm, "upcoming": [fire] })),
        "NextFires" => of::<wire::NextFires>(
            json!({ "description": "at 02:00", "timezone": "Europe/Zurich", "items": [fire] }),
        ),
        "Calendar" => of::<wire::Calendar>(json!({
            "from": TIME, "to": "2026-03-02T10:00:00Z", "step_seconds": 3_600, "steps": [{ "at": "2026-03-02T01:00:00Z", "fires": 1 }],
            "fires": 1, "frequent": 0, "notes": [], "more": false,
            "alarms": [{ "id": ID, "workspace_id": ID, "workspace": "shop", "name": "nightly", "label": "the nightly import",
                         "fires": ["2026-03-02T01:00:00Z"], "more": false }],
        })),
        "Backfilled" => of::<wire::Backfilled>(json!({ "dry_run": true,
            "items": [{ "scheduled_for": "2026-01-02T01:00:00Z", "status": "skipped", "fires": true }] })),
        "FiredByHand" => of::<wire::FiredByHand>(json!({ "alarm_id": ID, "scheduled_for": TIME })),
        "AlarmEvent" => of::<wire::AlarmEvent>(
            json!({ "id": 7, "at": TIME, "event": "paused", "actor": "ci", "detail": null }),
        ),
        _ => of::<wire::Occurrence>(json!({
            "alarm_id": ID, "scheduled_for": "2026-03-01T01:00:00Z", "due_at": "2026-03-01T01:00:00Z", "status": "fired",
            "origin": "schedule", "attempts": 1, "recoveries": 0, "reason": null, "note": null, "last_error": null, "answer_status": 200,
            "answer": "ok", "fired_at": "2026-03-01T01:00:01Z", "finished_at": "2026-03-01T01:00:01Z", "retry_at": null, "covers": null,
            "until": null,
        })),
    }
}

fn signal(shape: &str) -> Option<Value> {
    let dispatcher = "dispatcher-shop-default";
    match shape {
        "Signal" => of::<wire::Signal>(json!({
            "id": "order-17", "project": "shop", "task_queue": "default", "name": "order.paid", "status": "ROUTED",
            "dispatcher_id": dispatcher, "epoch": 4, "queue_item_id": ID, "execution_id": ID, "reason": null, "detail": null,
            "correlation_id": null, "payload": { "order": 17 }, "received_at": TIME, "settled_at": TIME, "sent_by": "ci", "replays": 0,
        })),
        "SignalSent" => of::<wire::SignalSent>(json!({ "id": "order-17", "duplicate": false })),
        "BulkSent" => of::<wire::BulkSent>(json!({ "items": [{ "id": "order-17", "duplicate": false }] })),
        "Trigger" => of::<wire::Trigger>(json!({
            "project": "shop", "task_queue": null, "name": "order.paid", "workspace_id": ID, "workspace": "shop",
            "workflow_definition_id": ID, "workflow": "import", "payload_schema": null, "priority": 3, "created_at": TIME,
            "updated_at": TIME,
        })),
        "Dispatcher" => of::<wire::Dispatcher>(json!({
            "id": dispatcher, "project": "shop", "task_queue": "default", "state": "owned", "owner": ID, "owner_name": "one", "epoch": 4,
            "engine": "temporal", "run_id": ID, "run_started_at": TIME, "taken_at": TIME, "lease_until": LATER, "heartbeat_at": TIME,
            "waiting": 0, "oldest_waiting_at": null,
            "removal_requested_at": null, "servers": [{ "server_id": ID, "name": "one", "task_queue": "default", "registered_at": TIME, "alive": true }],
        })),
        "DispatcherEvent" => of::<wire::DispatcherEvent>(
            json!({ "id": 7, "at": TIME, "event": "takeover", "epoch": 4, "server_id": ID,
            "run_id": null, "actor": "server", "detail": {} }),
        ),
        _ => of::<wire::Reconciled>(json!({ "dry_run": true, "done": [], "problems": [],
            "findings": [{ "dispatcher_id": dispatcher, "class": "healthy", "reason": "its owner is alive", "epoch": 4, "owned": true,
                           "act": null }] })),
    }
}

fn lock(shape: &str) -> Option<Value> {
    let lock =
        json!({ "name": "nightly", "held": true, "by": "one", "token": 42, "since": TIME, "until": LATER });
    match shape {
        "Lock" => of::<wire::Lock>(lock),
        "Locks" => of::<wire::Locks>(json!({ "items": [lock] })),
        "Acquired" => {
            of::<wire::Acquired>(json!({ "name": "nightly", "token": 42, "holder": "one", "until": LATER }))
        }
        "UnlockAnswer" => {
            of::<wire::UnlockAnswer>(json!({ "name": "nightly", "released": true, "free_at": null }))
        }
        _ => of::<wire::LockExtended>(json!({ "until": LATER })),
    }
}

/// Servers, tokens, and the whole at a glance.
fn whole(shape: &str) -> Option<Value> {
    let server = json!({
        "id": ID, "name": "one", "version": "0.1.0", "engine": "temporal", "engine_up": true, "claiming": true, "alive": true,
        "draining": false, "in_hand": 2, "started_at": TIME, "seen_at": LATER, "left_at": null, "ended": null, "recovered": 0,
        "recovered_by": null,
    });
    let token = json!({
        "id": ID, "name": "ci", "hint": "8f2c", "role": "operator", "workspaces": [ID], "active": true, "created_at": TIME,
        "created_by": "cli:root", "expires_at": null, "revoked_at": null, "last_used_at": LATER,
    });
    let view = json!({
        "id": ID, "name": "what waits in the shop", "path": "/queue?status=PENDING&workspace=shop", "shared": true, "own": true,
        "made_by": "ci", "created_at": TIME,
    });
    let spread = json!({ "count": 40, "mean": 0.8, "p50": 0.5, "p95": 2.0, "longest": 4.2 });
    match shape {
        "Server" => of::<wire::Server>(server),
        "Servers" => of::<wire::Servers>(json!({ "items": [server] })),
        "Token" => of::<wire::Token>(token),
        "TokenMade" => of::<wire::TokenMade>(json!({ "token": token, "secret": "smt_…" })),
        "AuditEntry" => of::<wire::AuditEntry>(json!({
            "id": 7, "at": TIME, "actor": "token:ci:0190a1b2-7c3d-7000-8000-5e6f70819203", "server": null, "action": "workspace.change",
            "workspace_id": ID, "workspace": "shop", "subject": ID, "detail": { "paused": { "from": false, "to": true } },
        })),
        "Examination" => of::<wire::Examination>(json!({ "worst": "note",
            "findings": [{ "id": "failures", "severity": "note", "seen": "8 failures need a person", "advice": "stationmaster failures" }] })),
        "HistoryChart" => of::<wire::HistoryChart>(
            json!({ "from": TIME, "to": LATER, "step_seconds": 300, "counted_until": LATER,
            "points": [{ "at": TIME, "enqueued": 41, "started": 40, "completed": 38, "failed": 2, "cancelled": 0, "terminated": 0,
                         "timed_out": 0, "waiting": 3, "active": 5, "wait": spread, "run": spread, "alarms_fired": 1, "alarms_failed": 0,
                         "alarms_late": 0 }] }),
        ),
        "View" => of::<wire::View>(view),
        "Views" => of::<wire::Views>(json!({ "items": [view] })),
        "Backlog" => of::<wire::Backlog>(json!({ "items": [{
            "workflow_definition_id": ID, "workflow": "import", "ready": 14, "parked": 0, "oldest_at": TIME }] })),
        "Overview" => of::<wire::Overview>(json!({
            "open": false, "executions": [example("Execution")?], "failures": [example("FailureGroup")?], "servers": [server],
            "workspaces": [example("Workspace")?], "minutes": [{ "at": TIME, "completed": 38, "failed": 2, "cancelled": 0 }],
            "overview": { "waiting": 14, "starting": 0, "running": 2, "failures": 8, "servers": 1, "engine_up": true,
                          "completed_last_minute": 38, "failed_last_minute": 2 } })),
        _ => None,
    }
}
