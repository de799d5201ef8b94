//! `cargo xtask examples`: the guides for other languages, run as they are printed, in each language whose programs are on the machine. The
//! tests that do so belong to the server; this brings what they stand on and keeps the packages that they fetch.

use std::process::ExitCode;

use anyhow::Result;

use crate::repository::{self, Repository, code_of};
use crate::test::Surroundings;

/// Names the folder in which the tests keep packages from run to run.
const FOLDER_SETTING: &str = "STATIONMASTER_TEST_EXAMPLES";

/// Runs them. A language that is not here is left out by the tests themselves, which say so.
pub(crate) fn run(repository: &Repository) -> Result<ExitCode> {
    let surroundings = Surroundings::provide(repository)?;
    let mut command = repository.cargo();
    // As the tests are built: after them, nothing is built anew with other features.
    command.args([
        "test",
        "--workspace",
        "--test",
        "examples",
        "--",
        "--include-ignored",
    ]);
    // One after the other: each of them keeps the machine busy.
    command.args(["--test-threads", "1"]);
    command.env(FOLDER_SETTING, repository.target.join("tools").join("examples"));
    surroundings.given_to(&mut command);
    Ok(code_of(repository::run(&mut command)?))
}
