//! `stationmaster servers`: who shares the work.

use anyhow::Result;
use clap::Subcommand;
use stationmaster_client::wire::Server;

use super::Context;
use crate::output::{age, cell, status, table};

/// What to do with servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The servers there are, and whether they take work
    List,
}

pub(crate) async fn run(command: &Command, context: &Context) -> Result<()> {
    match command {
        Command::List => {
            let servers = context.client().await?.servers().await?;
            context.format.print(&servers[..], |servers| {
                table(
                    &["ID", "NAME", "STATE", "ENGINE", "VERSION", "UP FOR", "SEEN"],
                    servers.iter().map(row),
                )
            })
        }
    }
}

fn row(server: &Server) -> Vec<comfy_table::Cell> {
    vec![
        cell(server.id),
        cell(&server.name),
        status(state(server)),
        cell(&server.engine),
        cell(&server.version),
        cell(age(server.started_at)),
        cell(format!("{} ago", age(server.seen_at))),
    ]
}

fn state(server: &Server) -> &'static str {
    match server {
        Server { alive: false, .. } => "gone",
        Server { claiming: false, .. } => "takes no work",
        Server { engine_up: false, .. } => "engine down",
        _ => "up",
    }
}
