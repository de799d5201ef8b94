//! `stationmaster servers`: who shares the work.

use anyhow::Result;
use clap::Subcommand;
use stationmaster_client::wire::Server;

use super::Context;
use super::pages::Sorting;
use crate::output::{Column, Described, cell, column, id, status, time};

/// What to do with servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The servers there are, and whether they take work
    List(Sorting),
}

pub(crate) async fn run(command: &Command, context: &Context) -> Result<()> {
    match command {
        Command::List(sorting) => context.show_all(context.client().await?.servers().await?, sorting),
    }
}

impl Described for Server {
    const COLUMNS: &'static [Column<Self>] = &[
        id("ID", |server| server.id),
        column("NAME", |server| cell(&server.name)),
        column("STATE", |server| status(state(server))),
        column("ENGINE", |server| cell(&server.engine)),
        column("VERSION", |server| cell(&server.version)),
        time("STARTED", |server| Some(server.started_at)),
        time("SEEN", |server| Some(server.seen_at)),
    ];
}

fn state(server: &Server) -> &'static str {
    match server {
        Server { alive: false, .. } => "gone",
        Server { claiming: false, .. } => "takes no work",
        Server { engine_up: false, .. } => "engine down",
        _ => "up",
    }
}
