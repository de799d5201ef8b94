//! `stationmaster audit`: who changed what, and when.

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use stationmaster_client::Client;
use stationmaster_client::wire::{AuditEntry, AuditQuery, Reference};

use super::Context;
use super::arguments::text;
use super::inspection::by;
use super::names::{self, reference};
use super::pages::Newest;
use super::times::past;
use crate::output::{Column, Described, cell, column, maybe, time, told};

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
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workspace: Option<Reference>,
    /// Only by this actor, as lists show it, or by the token or server of this name
    #[arg(long, value_parser = text)]
    actor: Option<String>,
    /// Only of this action, such as `workspace.change`
    #[arg(long, value_parser = text)]
    action: Option<String>,
    /// Only about this thing: an id, or a name
    #[arg(long, value_parser = text)]
    subject: Option<String>,
    /// Only what was done at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    since: Option<Timestamp>,
    /// Only what was done before this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    until: Option<Timestamp>,
    #[command(flatten)]
    part: Newest<10_000>,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let Command::List(args) = command;
    let client = context.client().await?;
    let workspace = names::workspace_asked(&client, args.workspace.as_ref()).await?;
    let query = AuditQuery {
        workspace_id: workspace.map(Reference::from),
        actor: args.actor,
        action: args.action,
        subject: args.subject,
        after: args.since,
        before: args.until,
        ..AuditQuery::default()
    };
    context.list(&client, args.part, query, Client::audit).await
}

impl Described for AuditEntry {
    const COLUMNS: &'static [Column<Self>] = &[
        time("AT", |line| Some(line.at)),
        column("BY", |line| cell(by(line.server.as_deref(), &line.actor))),
        column("ACTION", |line| cell(&line.action)),
        column("SUBJECT", |line| cell(&line.subject)),
        column("WORKSPACE", |line| {
            let id = line.workspace_id.map(|id| id.to_string());
            maybe(line.workspace.clone().or(id))
        }),
        told("DETAIL", |line| Some(line.detail.to_string())),
    ];
}
