//! `stationmaster servers`: who shares the work, who did, and who is to take no more of it.

use anyhow::Result;
use clap::Subcommand;
use stationmaster_client::wire::{Drain, Reference, Server, ServerQuery};

use super::Context;
use super::arguments::Caution;
use super::names::reference;
use super::pages::Sorting;
use crate::output::{Column, Described, cell, column, id, in_details, maybe, status, time};

/// What to do with servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The servers there are, and whether they take work
    List {
        /// Those too that have left: when, why, and what became of theirs
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        sorting: Sorting,
    },
    /// One server, also one that has left
    Show {
        /// Its name or its id
        #[arg(value_name = "SERVER", value_parser = reference)]
        server: Reference,
    },
    /// Let a server take no new work: it hands over what it can and finishes what it has in hand
    #[command(mut_arg("dry_run", |flag| flag.help("Only say which server, and what it has in hand")))]
    Drain {
        /// Its name or its id
        #[arg(value_name = "SERVER", value_parser = reference)]
        server: Reference,
        /// And let it leave, as if its process had been told to stop
        #[arg(long)]
        exit: bool,
        #[command(flatten)]
        caution: Caution,
    },
    /// Let a server take work again
    Resume {
        /// Its name or its id
        #[arg(value_name = "SERVER", value_parser = reference)]
        server: Reference,
    },
}

pub(crate) async fn run(command: &Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::List { all, sorting } => {
            let query = ServerQuery { all: Some(*all) };
            context.show_all(client.servers_on_record(&query).await?, sorting)
        }
        Command::Show { server } => context.show(&client.server(server.clone()).await?),
        Command::Drain {
            server,
            exit,
            caution,
        } => {
            let met = client.server(server.clone()).await?;
            if caution.dry_run {
                let words = format!(
                    "Server {} would take no new work; {}.",
                    met.name,
                    left(&met, *exit)
                );
                return context.say(&met, words);
            }
            // Whoever only takes no work takes it again when told so; a process that has left is started elsewhere.
            if *exit {
                caution.agreed(&format!(
                    "Let server {} leave? It does not come back by itself.",
                    met.name
                ))?;
            }
            let server = client
                .drain_server(server.clone(), &Drain { exit: *exit })
                .await?;
            let words = format!(
                "Server {} takes no new work; {}.",
                server.name,
                left(&server, *exit)
            );
            context.say(&server, words)
        }
        Command::Resume { server } => {
            let server = client.resume_server(server.clone()).await?;
            let words = format!("Server {} takes work again.", server.name);
            context.say(&server, words)
        }
    }
}

/// What is still to be done.
fn left(server: &Server, exit: bool) -> String {
    match (server.in_hand, exit) {
        (_, true) => "it leaves in order".to_owned(),
        (0, false) => "it has nothing in hand".to_owned(),
        (1, false) => "1 execution is in its hands".to_owned(),
        (many, false) => format!("{many} executions are in its hands"),
    }
}

impl Described for Server {
    const COLUMNS: &'static [Column<Self>] = &[
        id("ID", |server| server.id),
        column("NAME", |server| cell(&server.name)),
        column("STATE", |server| status(state(server))),
        column("ENGINE", |server| cell(&server.engine)),
        column("VERSION", |server| cell(&server.version)),
        column("IN HAND", |server| cell(server.in_hand)),
        time("STARTED", |server| Some(server.started_at)),
        time("SEEN", |server| Some(server.seen_at)),
        in_details(time("LEFT", |server| server.left_at)),
        in_details(column("RECOVERED", |server| cell(server.recovered))),
        in_details(column("RECOVERED BY", |server| {
            maybe(server.recovered_by.as_ref())
        })),
    ];
}

fn state(server: &Server) -> &'static str {
    match server {
        Server { ended: Some(end), .. } => end.as_str(),
        Server { alive: false, .. } => "gone",
        Server { draining: true, .. } => "draining",
        Server { claiming: false, .. } => "takes no work",
        Server { engine_up: false, .. } => "engine down",
        _ => "up",
    }
}
