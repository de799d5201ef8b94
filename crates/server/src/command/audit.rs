//! `stationmaster audit`: who changed what, and when.

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::Cell;
use stationmaster_client::wire::{AuditEntry, AuditQuery};
use uuid::Uuid;

use super::Context;
use super::arguments::{id, text};
use super::pages::{listed, say_where_it_ends};
use crate::output::{cell, maybe, moment, short, table};

/// What to do with the audit.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lines of the audit, newest first
    List(ListArgs),
}

/// Which lines.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only of this workspace
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    workspace: Option<Uuid>,
    /// Only by this actor, as lists show it
    #[arg(long, value_parser = text)]
    actor: Option<String>,
    /// Only of this action, such as `workspace.change`
    #[arg(long, value_parser = text)]
    action: Option<String>,
    /// Only about this thing: an id, or a name
    #[arg(long, value_parser = text)]
    subject: Option<String>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE")]
    before: Option<String>,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let Command::List(args) = command;
    let query = AuditQuery {
        workspace_id: args.workspace,
        actor: args.actor,
        action: args.action,
        subject: args.subject,
        ..AuditQuery::default()
    };
    let client = context.client().await?;
    let lines = listed(args.limit, args.before.as_deref(), async |limit, cursor| {
        let query = AuditQuery {
            limit,
            cursor,
            ..query.clone()
        };
        client.audit(&query).await
    })
    .await?;
    context.format.print(&lines.rows[..], |lines| {
        table(
            &["AT", "BY", "ACTION", "SUBJECT", "WORKSPACE", "DETAIL"],
            lines.iter().map(row),
        )
    })?;
    say_where_it_ends("--before", lines.next.as_deref(), context.format);
    Ok(())
}

fn row(line: &AuditEntry) -> Vec<Cell> {
    vec![
        cell(moment(line.at)),
        cell(&line.actor),
        cell(&line.action),
        cell(&line.subject),
        maybe(line.workspace_id),
        short(Some(&line.detail.to_string())),
    ]
}
