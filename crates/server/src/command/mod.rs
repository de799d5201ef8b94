//! The commands, one module a noun. A command reads its arguments, calls the API through a client, and prints what
//! came of it; whether a server answers or the same routes on a database alone it does not know (`Context::client`).
//! It holds no SQL and decides nothing about work. Errors go up as they are: `failure` turns them into words and
//! exit codes.
//!
//! What is seen of a thing, in a table or alone, are its columns ([`Described`](crate::output::Described)); lists go through
//! `pages`, and arguments that commands share stand in `arguments`.
//!
//! To add a command: a module here, a variant in [`cli::Command`](crate::cli::Command), a line in [`run`], an example in `examples`, and
//! in `guards` what it does to what there is.

use std::time::Duration;

use stationmaster_client::Error;

use crate::cli::{Cli, Command};
use crate::config::Target;
use crate::failure::{Kind, Refusal, is_away};

pub(crate) mod alarms;
pub(crate) mod apply;
mod arguments;
pub(crate) mod audit;
pub(crate) mod bench;
mod bench_api;
mod bulk;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
mod context;
pub(crate) mod contexts;
pub(crate) mod dev;
pub(crate) mod dispatchers;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod examples;
pub(crate) mod executions;
pub(crate) mod failures;
mod follow;
mod guards;
pub(crate) mod history;
mod inspection;
pub(crate) mod locks;
pub(crate) mod man;
pub(crate) mod migrate;
mod names;
pub(crate) mod operations;
mod pages;
pub(crate) mod plans;
pub(crate) mod queue;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod signals;
mod strays;
mod times;
pub(crate) mod tokens;
pub(crate) mod top;
pub(crate) mod triggers;
pub(crate) mod typed;
mod watch;
pub(crate) mod workflows;
pub(crate) mod workspaces;

pub(crate) use context::Context;

/// How long a server may take to say whether it is ready.
const PATIENCE: Duration = Duration::from_secs(2);

/// Carries out a command.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<()> {
    cli.looks().keep();
    let context = Context::new(cli.format(), cli.target, cli.flags);
    let done = Box::pin(carry_out(cli.command, &context)).await;
    match done {
        Err(error) if is_away(&error) => Err(in_its_own_words(error, &context).await),
        done => done,
    }
}

/// A server that is there and cannot serve knows why: its words tell more than that a call took too long.
async fn in_its_own_words(error: anyhow::Error, context: &Context) -> anyhow::Error {
    let Ok(Target::Api(api)) = context.target() else {
        return error;
    };
    let Ok(client) = Context::client_that_asks_once(&api.server) else {
        return error;
    };
    let asked = tokio::time::timeout(PATIENCE, client.readiness()).await;
    let Ok(Err(Error::Unavailable { problem, .. })) = asked else {
        return error;
    };
    let reason = problem.errors.first().map(|first| first.detail.clone());
    let Some(reason) = reason.or(problem.detail) else {
        return error;
    };
    let message = format!("the server at {} is not ready: {reason}", api.server.url);
    let advice = format!(
        "It goes on by itself as soon as this is mended; what else it sees: {}",
        typed::beside("doctor")
    );
    Refusal::new(Kind::Unavailable, message, advice).into()
}

async fn carry_out(command: Command, context: &Context) -> anyhow::Result<()> {
    match command {
        Command::Serve(args) => serve::run(&args, context).await,
        Command::Dev(args) => dev::run(&args, context).await,
        Command::Bench(command) => bench::run(command, context).await,
        Command::Migrate(args) => migrate::run(&args, context).await,
        Command::Doctor(args) => doctor::run(&args, context).await,
        Command::Apply(args) => Box::pin(apply::run(args, context)).await,
        Command::Workspaces(command) => workspaces::run(command, context).await,
        Command::Plans(command) => plans::run(command, context).await,
        Command::Workflows(command) => workflows::run(command, context).await,
        // These two hold whole live views; boxed, so that every other command does not carry them.
        Command::Queue(command) => Box::pin(queue::run(command, context)).await,
        Command::Executions(command) => Box::pin(executions::run(command, context)).await,
        Command::Failures(args) => failures::run(args, context).await,
        Command::Operations(command) => operations::run(command, context).await,
        Command::History(args) => history::run(args, context).await,
        Command::Alarms(command) => alarms::run(command, context).await,
        Command::Locks(command) => locks::run(command, context).await,
        Command::Top(args) => Box::pin(top::run(args, context)).await,
        Command::Tokens(command) => tokens::run(command, context).await,
        Command::Audit(command) => audit::run(command, context).await,
        Command::Servers(command) => servers::run(&command, context).await,
        Command::Engine(command) => engine::run(command, context).await,
        Command::Signals(command) => signals::run(command, context).await,
        Command::Triggers(command) => triggers::run(command, context).await,
        Command::Dispatchers(command) => dispatchers::run(command, context).await,
        Command::Config(command) => config::run(&command, context),
        Command::Contexts(command) => contexts::run(command, context),
        Command::Complete(args) => complete::run(&args).await,
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(args, context),
        Command::Docs(command) => docs::run(&command, context).await,
    }
}
