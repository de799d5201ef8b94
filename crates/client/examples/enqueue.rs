//! Ask for a workflow to run, and wait for what comes of it.
//!
//! `STATIONMASTER_URL=http://127.0.0.1:7373 STATIONMASTER_TOKEN=smt_… cargo run --example enqueue -- WORKSPACE WORKFLOW`

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::value::to_raw_value;
use stationmaster_client::wire::{Enqueue, Execution, ExecutionStatus, Reference};
use stationmaster_client::{Client, wire};
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("STATIONMASTER_URL").unwrap_or_else(|_| "http://127.0.0.1:7373".to_owned());
    let mut builder = Client::builder().timeout(Duration::from_secs(10));
    if let Ok(token) = std::env::var("STATIONMASTER_TOKEN") {
        builder = builder.token(token);
    }
    // Names, or ids.
    let mut arguments = std::env::args().skip(1).map(Reference::from);
    let mut next = || arguments.next().context("WORKSPACE and WORKFLOW");
    let execution = run(&builder.build(&url)?, next()?, next()?).await?;
    println!("{:?}: {:?}", execution.status, execution.output);
    Ok(())
}

/// Enqueues, listens, and answers with the execution when it has ended.
pub(crate) async fn run(client: &Client, workspace: Reference, workflow: Reference) -> Result<Execution> {
    // From before the request on, so that nothing is missed.
    let mut events = client.listen(
        wire::EventQuery {
            workspace_id: Some(workspace.clone()),
            family: None,
        },
        None,
    );
    events.next().await?;
    let request = Enqueue {
        input: Some(to_raw_value(&serde_json::json!({ "night": 1 }))?),
        // The same key and the same request give the same item, however often it is asked for.
        idempotency_key: Some(format!("night-1-{}", Uuid::now_v7())),
        ..Enqueue::new(workspace, workflow)
    };
    let enqueued = client.enqueue(&request).await?;
    loop {
        let item = client.queue_item(enqueued.id).await?.item;
        if let Some(id) = item.execution_id {
            let execution = client.execution(id).await?;
            let active = [
                ExecutionStatus::Pending,
                ExecutionStatus::Starting,
                ExecutionStatus::Running,
            ];
            if !active.contains(&execution.status) {
                return Ok(execution);
            }
        }
        // Look again when something happens in the workspace, and after a second anyway: not everything is an event.
        if let Ok(told) = tokio::time::timeout(Duration::from_secs(1), events.next()).await {
            told?;
        }
    }
}
