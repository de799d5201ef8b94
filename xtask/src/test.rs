//! `cargo xtask test`: brings up what the tests need, runs them, and takes it all down again.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use stationmaster_postgres::{Binaries, Server, Settings};

use crate::components::{
    FAKETIME, FAKETIME_SETTING, PGBOUNCER, PGBOUNCER_SETTING, POSTGRES, PROMETHEUS, PROMETHEUS_SETTING,
    PROMTOOL, PROMTOOL_SETTING, PSYCOPG, PSYCOPG_SETTING, REDIS, REDIS_SETTING, SCHEMATHESIS,
    SCHEMATHESIS_SETTING, TEMPORAL, TEMPORAL_SETTING,
};
use crate::repository::{self, Repository, code_of};

/// Tests run at the same time, and each has pools of its own.
const MAX_CONNECTIONS: u16 = 400;

/// Arguments by which a caller chooses kinds of targets; then we must not choose all of them.
const TARGET_CHOICES: [&str; 10] = [
    "--lib",
    "--bin",
    "--bins",
    "--test",
    "--tests",
    "--example",
    "--examples",
    "--bench",
    "--benches",
    "--doc",
];

/// Arguments by which a caller chooses packages.
const PACKAGE_CHOICES: [&str; 2] = ["-p", "--package"];

/// What the tests find around them. It is gone with this value.
pub(crate) struct Surroundings {
    server: Server,
    settings: [(&'static str, PathBuf); 9],
}

impl Surroundings {
    /// Finds or installs the programs, and starts a PostgreSQL.
    pub(crate) fn provide(repository: &Repository) -> Result<Self> {
        let bin_dir = POSTGRES.provide(repository)?;
        let settings = [
            ("STATIONMASTER_TEST_POSTGRES_BIN", bin_dir.clone()),
            (TEMPORAL_SETTING, TEMPORAL.provide(repository)?),
            (SCHEMATHESIS_SETTING, SCHEMATHESIS.provide(repository)?),
            (REDIS_SETTING, REDIS.provide(repository)?),
            (PGBOUNCER_SETTING, PGBOUNCER.provide(repository)?),
            (FAKETIME_SETTING, FAKETIME.provide(repository)?),
            (PSYCOPG_SETTING, PSYCOPG.provide(repository)?),
            (PROMETHEUS_SETTING, PROMETHEUS.provide(repository)?),
            (PROMTOOL_SETTING, PROMTOOL.provide(repository)?),
        ];
        let binaries = Binaries::find(Some(&bin_dir))?;
        let how = Settings {
            max_connections: MAX_CONNECTIONS,
            ..Settings::throw_away(&repository.target.join("test-env"))
        };
        let server = Server::start(&binaries, &how).context("cannot start a PostgreSQL for the tests")?;
        eprintln!(
            "PostgreSQL {} for the tests: port {}, {}",
            binaries.version,
            server.port(),
            server.folder().display()
        );
        Ok(Self { server, settings })
    }

    /// Tells a command of tests where everything is.
    pub(crate) fn given_to(&self, command: &mut Command) {
        command.env("STATIONMASTER_TEST_DATABASE_URL", self.server.url("postgres"));
        for (name, path) in &self.settings {
            command.env(name, path);
        }
    }
}

/// Runs the tests; the arguments go to `cargo test`.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let surroundings = Surroundings::provide(repository)?;
    for mut command in commands(repository, arguments) {
        surroundings.given_to(&mut command);
        let status = repository::run(&mut command)?;
        if !status.success() {
            return Ok(code_of(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the test that fuzzes the HTTP API, for longer.
pub(crate) fn fuzz_api(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let examples = arguments.first().map_or("500", String::as_str);
    let arguments = [
        "--package=stationmaster",
        "--test=api",
        &format!("--config=env.STATIONMASTER_TEST_FUZZ_EXAMPLES=\"{examples}\""),
        "fuzzer",
        "--",
        "--nocapture",
    ];
    run(repository, &arguments.map(str::to_owned))
}

/// One run for all targets and one for the examples in the documentation, which cargo cannot combine; only one when
/// the caller chose targets.
fn commands(repository: &Repository, arguments: &[String]) -> Vec<Command> {
    let kinds: &[&[&str]] = if chooses(arguments, &TARGET_CHOICES) {
        &[&[]]
    } else {
        &[&["--all-targets"], &["--doc"]]
    };
    let packages: &[&str] = if chooses(arguments, &PACKAGE_CHOICES) {
        &[]
    } else {
        &["--workspace"]
    };
    let command = |kind: &&[&str]| {
        let mut command = repository.cargo();
        // One run tells all that fails.
        command
            .args(["test", "--no-fail-fast"])
            .args(packages)
            .args(*kind)
            .args(arguments);
        command
    };
    kinds.iter().map(command).collect()
}

/// Whether one of the options is among the arguments meant for cargo: those after `--` are for the tests.
fn chooses(arguments: &[String], options: &[&str]) -> bool {
    let for_cargo = arguments.iter().take_while(|argument| *argument != "--");
    let mut names = for_cargo.map(|argument| argument.split('=').next().unwrap_or(argument));
    names.any(|name| options.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::words;

    fn typed(arguments: &[&str]) -> Vec<String> {
        let repository = Repository {
            root: ".".into(),
            target: "target".into(),
        };
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let commands = commands(&repository, &arguments);
        commands
            .iter()
            .map(|command| words(command).split_once(' ').unwrap().1.to_owned())
            .collect()
    }

    #[test]
    fn without_a_choice_everything_is_tested() {
        assert_eq!(
            typed(&[]),
            [
                "test --no-fail-fast --workspace --all-targets",
                "test --no-fail-fast --workspace --doc"
            ]
        );
        assert_eq!(
            typed(&["a_name", "--", "--test"]),
            [
                "test --no-fail-fast --workspace --all-targets a_name -- --test",
                "test --no-fail-fast --workspace --doc a_name -- --test"
            ]
        );
    }

    #[test]
    fn a_choice_of_the_caller_is_not_widened() {
        assert_eq!(
            typed(&["--test", "server"]),
            ["test --no-fail-fast --workspace --test server"]
        );
        assert_eq!(
            typed(&["-p", "xtask", "--bin=xtask"]),
            ["test --no-fail-fast -p xtask --bin=xtask"]
        );
    }
}
