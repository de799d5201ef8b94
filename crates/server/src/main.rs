//! Stationmaster: durable dispatch. The command line becomes one command, the command becomes an exit code.

mod cli;
mod command;
mod config;
mod dashboard;
mod doctor;
mod failure;
mod http;
mod output;
mod service;
mod telemetry;
mod version;
mod wiring;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let format = cli.format();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let done = runtime.block_on(command::run(cli));
        // The command has its answer: nobody waits for a resolver that does not answer, or for somebody to type.
        runtime.shutdown_background();
        done
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error, format),
    }
}
