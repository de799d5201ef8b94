//! `cargo xtask dst`: the whole comparison of fires with a scan of every zone, of which the normal tests run a sample.

use std::process::ExitCode;

use anyhow::Result;

use crate::repository::{Repository, code_of, run as run_program};

/// Needs no database.
pub(crate) fn run(repository: &Repository) -> Result<ExitCode> {
    let mut command = repository.cargo();
    command.args(["test", "--package", "stationmaster-schedule", "--test", "dst"]);
    command.args(["--", "--ignored", "--nocapture"]);
    run_program(&mut command).map(code_of)
}
