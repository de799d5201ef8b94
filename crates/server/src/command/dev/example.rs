//! The live example of `dev`: a workspace of each plan, a workflow, a trickle of executions, and a line now and then that
//! shows what happens.

use std::time::Duration;

use anyhow::Result;
use stationmaster_client::wire::{
    NewAlarm, NewSignal, TriggerChange, WorkflowChange, Workspace, WorkspaceChange,
};
use stationmaster_core::alarms::set::set;
use stationmaster_core::catalogue;
use stationmaster_core::db::Database;
use stationmaster_core::executions::enqueue::{Enqueue, enqueue};
use stationmaster_core::executions::inspect;
use stationmaster_core::id::{DefinitionId, WorkspaceId};
use stationmaster_core::signals;
use stationmaster_core::signals::send::send;
use stationmaster_core::signals::triggers::{self, Place};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Fixed ids, so that a second run finds what the first one made.
const TENANTS: [(&str, &str, u128); 3] = [
    ("acme", "FREE", 1),
    ("globex", "PRO", 2),
    ("initech", "ENTERPRISE", 3),
];
/// What to look at first, and what to try: it has five commands, and names for everything.
pub(super) const TOUR: &[(&str, &str)] = &[
    (
        "stationmaster workspaces list",
        "who uses how many slots, and how much waits",
    ),
    (
        "stationmaster queue show --workspace acme",
        "why its newest item waits, and who holds the slot",
    ),
    (
        "stationmaster workspaces set acme --limit 4",
        "takes effect at once",
    ),
    (
        "stationmaster failures",
        "what needs a person, by what it has in common",
    ),
    (
        "stationmaster alarms show acme.pulse",
        "when it fires next, and what became of it so far",
    ),
];
/// It fails, so that there is something to see to.
const REFUND: u128 = 9;
const REFUND_GRAPH: &str = r#"{"nodes": [{"id": "look-up", "type": "wait", "seconds": 0.4},
                                         {"id": "pay", "type": "fail", "message": "order 8812 not found"}],
                               "edges": [{"from": "look-up", "to": "pay"}]}"#;
const REFUND_EVERY: u32 = 30;
const GRAPH: &str = r#"{"nodes": [{"id": "fetch", "type": "wait", "seconds": 0.8},
                                  {"id": "work", "type": "wait", "seconds": 1.7},
                                  {"id": "report", "type": "noop"}],
                        "edges": [{"from": "fetch", "to": "work"}, {"from": "work", "to": "report"}]}"#;
/// No more is enqueued for a workspace that has this much waiting.
const ENOUGH: i64 = 12;
/// Every ten seconds.
const CRON: &str = "*/10 * * * * *";
const ONCE_IN: f64 = 5.0;
const BEAT: Duration = Duration::from_secs(1);
const SAY_EVERY: u32 = 3;
/// Its signals start the workflow of the second workspace.
const PROJECT: &str = "example";
const SIGNAL: &str = "order.paid";
const SIGNAL_EVERY: u32 = 9;

fn workspace_id(number: u128) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(
        0x0e1a_0000_0000_7000_8000_0000_0000_0000 + number,
    ))
}

fn definition_id(number: u128) -> DefinitionId {
    DefinitionId(Uuid::from_u128(
        0x0e1a_0000_0000_7000_8000_0000_0001_0000 + number,
    ))
}

/// Starts the example in the background.
pub(super) fn start(database: Database) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = make(&database).await {
            tracing::warn!(error = format!("{error:#}"), "The example could not be set up");
            return;
        }
        println!(
            "The example: three workspaces enqueue more than their plans allow at once, two alarms fire, now and then a \
             signal starts one more, and a refund fails."
        );
        let (mut beats, mut signal) = (0, None);
        loop {
            match beat(&database, beats, &mut signal).await {
                Ok(()) => beats += 1,
                // The database restarts, or we are about to stop.
                Err(error) => tracing::debug!(error = format!("{error:#}"), "The example missed a beat"),
            }
            tokio::time::sleep(BEAT).await;
        }
    })
}

async fn make(database: &Database) -> Result<()> {
    for (name, plan, number) in TENANTS {
        let workspace = WorkspaceChange {
            name: Some(name.to_owned()),
            plan: Some(plan.to_owned()),
            ..WorkspaceChange::default()
        };
        catalogue::put_workspace(database, workspace_id(number), workspace, None).await?;
        let definition = WorkflowChange {
            name: Some("nightly report".to_owned()),
            ..WorkflowChange::of(workspace_id(number).0)
        };
        let definition = catalogue::put_definition(database, definition_id(number), definition, None).await?;
        if definition.current_version.is_none() {
            catalogue::add_version(database, definition_id(number), GRAPH).await?;
        }
    }
    let refund = WorkflowChange {
        name: Some("refund".to_owned()),
        ..WorkflowChange::of(workspace_id(2).0)
    };
    let refund = catalogue::put_definition(database, definition_id(REFUND), refund, None).await?;
    if refund.current_version.is_none() {
        catalogue::add_version(database, definition_id(REFUND), REFUND_GRAPH).await?;
    }
    let place = Place {
        project: PROJECT,
        task_queue: None,
        name: SIGNAL,
    };
    let trigger = TriggerChange {
        workflow_definition_id: definition_id(2).0,
        payload_schema: None,
        priority: Some(10),
    };
    triggers::set(database, place, &trigger, None).await?;
    alarms(database).await
}

/// One that fires again and again, found again by its key, and one for once at each start.
async fn alarms(database: &Database) -> Result<()> {
    let cron = NewAlarm {
        workspace_id: workspace_id(1).0,
        name: Some("pulse".to_owned()),
        label: "the example's cron alarm".to_owned(),
        cron_expr: Some(CRON.to_owned()),
        timezone: Some("Europe/Zurich".to_owned()),
        message: Some(format!("a cron alarm fires ({CRON})")),
        idempotency_key: Some("dev example".to_owned()),
        ..NewAlarm::default()
    };
    let once = NewAlarm {
        workspace_id: workspace_id(1).0,
        label: "the example's alarm for once".to_owned(),
        delay: Some(ONCE_IN),
        message: Some("an alarm fires for once".to_owned()),
        ..NewAlarm::default()
    };
    for request in [cron, once] {
        set(database, &request, "dev example").await?;
    }
    Ok(())
}

async fn beat(database: &Database, beats: u32, signal: &mut Option<String>) -> Result<()> {
    if beats.is_multiple_of(SIGNAL_EVERY) {
        let sent = send(database, NewSignal::new(PROJECT, SIGNAL), "dev example").await?;
        *signal = Some(sent.id);
    }
    if beats.is_multiple_of(REFUND_EVERY) {
        let refund = Enqueue {
            priority: 5,
            ..Enqueue::new(workspace_id(2).0, definition_id(REFUND).0)
        };
        enqueue(database, refund, "dev example").await?;
    }
    let mut tenants = Vec::new();
    for (_, _, number) in TENANTS {
        let workspace = catalogue::workspace(database, workspace_id(number)).await?;
        // Each asks for a little more than its plan lets through, so that the limits can be seen at work.
        let wanted = if workspace.ready < ENOUGH {
            workspace.limit / 2 + 1
        } else {
            0
        };
        for _ in 0..wanted {
            enqueue(
                database,
                Enqueue::new(workspace_id(number).0, definition_id(number).0),
                "dev example",
            )
            .await?;
        }
        tenants.push(workspace);
    }
    tell_of(database, signal).await?;
    if beats % SAY_EVERY == SAY_EVERY - 1 {
        let overview = inspect::overview(database).await?;
        println!(
            "{}   {} completed in the last minute",
            line(&tenants),
            overview.completed_last_minute
        );
    }
    Ok(())
}

/// Says what became of the last signal, once it has led somewhere.
async fn tell_of(database: &Database, signal: &mut Option<String>) -> Result<()> {
    let Some(id) = signal.as_deref() else {
        return Ok(());
    };
    let Some(seen) = signals::inspect::show(database, id, None).await? else {
        return Ok(());
    };
    let Some(execution) = seen.execution_id else {
        return Ok(());
    };
    println!(
        "signal {} -> {} -> execution {execution}   (stationmaster signals show {id})",
        seen.name, seen.dispatcher_id
    );
    *signal = None;
    Ok(())
}

/// Slots as a picture: `acme ■ 1/1 +11`.
fn line(tenants: &[Workspace]) -> String {
    let one = |workspace: &Workspace| {
        let picture: String = (0..workspace.limit)
            .map(|slot| if slot < workspace.active { '■' } else { '□' })
            .collect();
        format!(
            "{} {picture} {}/{} +{} waiting",
            workspace.name, workspace.active, workspace.limit, workspace.ready
        )
    };
    tenants.iter().map(one).collect::<Vec<_>>().join("   ")
}
