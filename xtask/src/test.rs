//! `cargo xtask test`: brings up what the tests need, runs them, and takes it all down again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use stationmaster_postgres::{Binaries, Server, Settings};

use crate::components::{
    AXE, AXE_SETTING, CHROMIUM, CHROMIUM_SETTING, FAKETIME, FAKETIME_SETTING, PGBOUNCER, PGBOUNCER_SETTING,
    POSTGRES, PROMETHEUS, PROMETHEUS_SETTING, PROMTOOL, PROMTOOL_SETTING, PSYCOPG, PSYCOPG_SETTING, REDIS,
    REDIS_SETTING, SCHEMATHESIS, SCHEMATHESIS_SETTING, TEMPORAL, TEMPORAL_SETTING,
};
use crate::repository::{self, Repository, code_of};

/// Tests run at the same time, and each has pools of its own.
const MAX_CONNECTIONS: u16 = 400;

/// The suite whose tests mostly wait, for leases to run out and for processes to start: more of them run at once than there are cores.
const WAITING: &str = "processes";
const WAITING_ABREAST: &str = "4";

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
    settings: [(&'static str, PathBuf); 11],
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
            (CHROMIUM_SETTING, CHROMIUM.provide(repository)?),
            (AXE_SETTING, AXE.provide(repository)?),
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
    let mut outcome = ExitCode::SUCCESS;
    for mut command in commands(repository, arguments)? {
        surroundings.given_to(&mut command);
        let status = repository::run(&mut command)?;
        if !status.success() {
            outcome = code_of(status);
        }
    }
    Ok(outcome)
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

/// Makes pictures of the dashboard, for the documents.
pub(crate) fn pictures(repository: &Repository) -> Result<ExitCode> {
    let folder = repository.root.join("docs/pictures");
    let arguments = [
        "--package=stationmaster",
        "--test=dashboard",
        &format!("--config=env.STATIONMASTER_PICTURES=\"{}\"", folder.display()),
        "pictures",
        "--",
        "--ignored",
        "--nocapture",
    ];
    run(repository, &arguments.map(str::to_owned))
}

/// One run for the targets, one for those that mostly wait, and one for the examples in the documentation, which cargo cannot
/// combine; only one when the caller chose targets, or packages, which need not have them all.
fn commands(repository: &Repository, arguments: &[String]) -> Result<Vec<Command>> {
    let command = |kind: &[String]| {
        let mut command = repository.cargo();
        // One run tells all that fails.
        command.args(["test", "--no-fail-fast"]);
        if !chooses(arguments, &PACKAGE_CHOICES) {
            command.arg("--workspace");
        }
        command.args(kind).args(arguments);
        command
    };
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    if chooses(arguments, &TARGET_CHOICES) {
        return Ok(vec![command(&[])]);
    }
    let documentation = command(&owned(&["--doc"]));
    if chooses(arguments, &PACKAGE_CHOICES) {
        return Ok(vec![command(&owned(&["--all-targets"])), documentation]);
    }
    let mut busy = owned(&["--lib", "--bins", "--examples", "--benches"]);
    for name in suites(repository)? {
        if name != WAITING {
            busy.extend(["--test".to_owned(), name]);
        }
    }
    let mut waiting = command(&owned(&["--test", WAITING]));
    waiting.env("RUST_TEST_THREADS", WAITING_ABREAST);
    Ok(vec![command(&busy), waiting, documentation])
}

/// The names of all suites of integration tests, each once.
fn suites(repository: &Repository) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for package in fs::read_dir(repository.root.join("crates"))? {
        let Ok(tests) = fs::read_dir(package?.path().join("tests")) else {
            continue;
        };
        for entry in tests {
            let path = entry?.path();
            let is_suite =
                path.join("main.rs").is_file() || path.extension().is_some_and(|ending| ending == "rs");
            names.extend(
                path.file_stem()
                    .filter(|_| is_suite)
                    .and_then(OsStr::to_str)
                    .map(str::to_owned),
            );
        }
    }
    Ok(names)
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
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let repository = Repository {
            root: root.parent().unwrap().into(),
            target: "target".into(),
        };
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let commands = commands(&repository, &arguments).unwrap();
        commands
            .iter()
            .map(|command| words(command).split_once(' ').unwrap().1.to_owned())
            .collect()
    }

    #[test]
    fn without_a_choice_everything_is_tested_and_each_suite_once() {
        for arguments in [&[][..], &["a_name", "--", "--test"]] {
            let [busy, waiting, documentation] = <[String; 3]>::try_from(typed(arguments)).unwrap();
            let given: String = arguments.iter().flat_map(|argument| [" ", argument]).collect();
            let suites = busy
                .strip_prefix("test --no-fail-fast --workspace --lib --bins --examples --benches ")
                .unwrap();
            let times = |suite| suites.split_whitespace().filter(|word| *word == suite).count();
            for suite in ["api", "cli", "executions", "idle"] {
                assert_eq!(times(suite), 1, "{suite}: {suites}");
            }
            assert_eq!(times(WAITING), 0, "{suites}");
            assert_eq!(
                waiting,
                format!("test --no-fail-fast --workspace --test processes{given}")
            );
            assert_eq!(
                documentation,
                format!("test --no-fail-fast --workspace --doc{given}")
            );
        }
    }

    #[test]
    fn a_package_is_tested_whole() {
        assert_eq!(
            typed(&["-p", "xtask"]),
            [
                "test --no-fail-fast --all-targets -p xtask",
                "test --no-fail-fast --doc -p xtask"
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
