//! `cargo xtask dev` and `cargo xtask bench`: build the product and become it. What it starts, it starts itself.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::components::{POSTGRES, TEMPORAL, TEMPORAL_SETTING};
use crate::repository::{Repository, words};

/// The setting of the product that names the directory of `PostgreSQL`'s programs.
const POSTGRES_SETTING: &str = "STATIONMASTER_DEV__POSTGRES_BIN";

/// Where the benchmark keeps its private `PostgreSQL`.
const BENCH_FOLDER: &str = "STATIONMASTER_BENCH_FOLDER";

/// Runs everything on this machine, with a private `PostgreSQL`.
pub(crate) fn dev(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let bin_dir = POSTGRES.provide(repository)?;
    // Whoever tries the product waits for its build, and PostgreSQL does most of the work.
    let mut command = product(repository, "trial", "dev", arguments);
    become_product(command.env(POSTGRES_SETTING, bin_dir))
}

/// Runs the product's benchmark.
pub(crate) fn bench(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let bin_dir = POSTGRES.provide(repository)?;
    let temporal = TEMPORAL.provide(repository)?;
    let mut command = product(repository, "release", "bench", arguments);
    command
        .env(POSTGRES_SETTING, bin_dir)
        .env(TEMPORAL_SETTING, temporal);
    become_product(command.env(BENCH_FOLDER, repository.target.join("bench")))
}

/// `cargo run` replaces itself by the program it built, wherever the build put it.
fn product(repository: &Repository, profile: &str, subcommand: &str, arguments: &[String]) -> Command {
    let mut command = repository.cargo();
    command.args([
        "run",
        "--profile",
        profile,
        "--package",
        "stationmaster",
        "--bin",
        "stationmaster",
        "--",
        subcommand,
    ]);
    command.args(arguments);
    command
}

/// Replaces this process, so that signals go straight to the product.
fn become_product(command: &mut Command) -> Result<ExitCode> {
    eprintln!("  $ {}", words(command));
    Err(command.exec()).with_context(|| format!("cannot run `{}`", words(command)))
}
