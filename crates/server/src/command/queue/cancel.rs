//! Cancel, by the id of an item or of its execution: `queue cancel` and `executions cancel` are the same.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use stationmaster_core::db::Database;
use stationmaster_core::executions::operate::{self, Cancelled};
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::id;

/// What to cancel, and why.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The item or its execution
    #[arg(value_parser = id::<Uuid>)]
    id: Uuid,
    /// Why, for the history
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    id: Uuid,
    /// `cancelled`, or `requested` when a run has to agree first.
    result: &'static str,
}

pub(crate) async fn cancel(args: &CancelArgs, database: &Database, context: &Context) -> Result<()> {
    let id = args.id;
    let result = match operate::cancel(database, id, args.reason.as_deref(), &Context::actor()).await? {
        Cancelled::AtOnce => "cancelled",
        Cancelled::Requested => "requested",
        Cancelled::EndedBefore(status) => {
            let message = format!("{id} has ended before: it is {status}");
            return Err(operate::Error::WrongState(message).into());
        }
    };
    context
        .format
        .print(&Answer { id, result }, |answer| match answer.result {
            "cancelled" => format!("Cancelled {id}."),
            _ => format!(
                "{id} runs: its engine is asked to cancel it, and its slot is free when the run has closed."
            ),
        })
}
