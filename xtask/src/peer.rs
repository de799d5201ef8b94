//! `cargo xtask peer river [jobs]`: the same number of jobs that do nothing through River and through us, in turns, on one private
//! PostgreSQL with durable commits.
//!
//! River's side is a program in Go under `interop/river`; so it is a command of its own, and needs Go.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use stationmaster_postgres::{Binaries, Durability, Server, Settings};

use crate::components::POSTGRES;
use crate::repository::{self, Repository, printed};

const JOBS: &str = "200000";
/// One after the other, so that whatever else the machine does meets both.
const ROUNDS: usize = 3;

/// Runs what the arguments name.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let jobs = match arguments {
        [which] if which == "river" => JOBS,
        [which, jobs] if which == "river" => jobs,
        _ => bail!("name the peer: cargo xtask peer river [jobs]"),
    };
    let bin_dir = POSTGRES.provide(repository)?;
    let folder = repository.target.join("interop").join("river");
    std::fs::create_dir_all(&folder)?;
    let program = folder.join("peer");
    let mut go = Command::new("go");
    go.arg("build").arg("-o").arg(&program).arg(".");
    go.current_dir(repository.root.join("interop/river"));
    if !repository::run(&mut go).context("River needs Go")?.success() {
        bail!("River's side does not build");
    }
    let mut build = repository.cargo();
    build.args(["build", "--release", "--package", "stationmaster"]);
    if !repository::run(&mut build)?.success() {
        bail!("the product does not build");
    }
    let settings = Settings {
        durability: Durability::Durable,
        max_connections: 200,
        ..Settings::throw_away(&repository.target.join("bench"))
    };
    let server = Server::start(&Binaries::find(Some(&bin_dir))?, &settings)
        .context("cannot start a PostgreSQL for the two")?;
    let url = server.url("postgres");
    println!("{jobs} jobs that do nothing, per second\n\n  River  Stationmaster  ratio");
    for _ in 0..ROUNDS {
        let river = per_second(Command::new(&program).args([&url, jobs]))?;
        let bench = [
            "bench",
            "executions",
            "--scenario",
            "noop",
            "--json",
            "--items",
            jobs,
            "--on",
            &url,
        ];
        let ours = per_second(Command::new(repository.target.join("release/stationmaster")).args(bench))?;
        println!("{river:>7.0}  {ours:>13.0}  {:>5.2}", ours / river);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a program that prints JSON; its figure.
fn per_second(command: &mut Command) -> Result<f64> {
    figure(&printed(command)?).context("it printed no figure")
}

fn figure(json: &str) -> Option<f64> {
    let (_, rest) = json.split_once("\"per_second\":")?;
    let end = rest.find([',', '}', '\n']).unwrap_or(rest.len());
    rest[..end].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_found_among_others() {
        let json = r#"{"noop": {"bare_per_second": 1.5, "per_second": 2.25, "seconds": 3}}"#;
        assert_eq!(figure(json), Some(2.25));
        assert_eq!(figure("{\"jobs\":1,\"per_second\":7}\n"), Some(7.0));
        assert_eq!(figure("{}"), None);
    }
}
