//! `cargo xtask test`: brings up what the tests need, runs them, and takes it all down again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread;

use anyhow::{Context, Result, bail};
use stationmaster_postgres::{Binaries, Server, Settings};

use crate::alone::{self, Verdict};
use crate::components::{
    AXE, AXE_SETTING, CHROMIUM, CHROMIUM_SETTING, FAKETIME, FAKETIME_SETTING, KUBERNETES_VALIDATE,
    KUBERNETES_VALIDATE_SETTING, KUSTOMIZE, KUSTOMIZE_SETTING, PGBOUNCER, PGBOUNCER_SETTING, POSTGRES,
    PROMETHEUS, PROMETHEUS_SETTING, PROMTOOL, PROMTOOL_SETTING, PSYCOPG, PSYCOPG_SETTING, REDIS,
    REDIS_SETTING, SCHEMATHESIS, SCHEMATHESIS_SETTING, TEMPORAL, TEMPORAL_SETTING,
};
use crate::repository::{self, Repository, code_of};

/// Tests run at the same time, and each has pools of its own.
const MAX_CONNECTIONS: u16 = 400;

/// The suites whose tests mostly wait, for leases to run out, for processes to start and for alerts to fire, and how many of their tests run
/// at once; and how many of the others do, which wait too, for the database. Both are made for two cores.
const WAITING: [&str; 4] = ["alerts", "dispatchers", "operations", "processes"];
const WAITING_ABREAST: usize = 4;
const BUSY_ABREAST: usize = 3;

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
    settings: Vec<(&'static str, PathBuf)>,
}

impl Surroundings {
    /// Finds or installs the programs, and starts a PostgreSQL.
    pub(crate) fn provide(repository: &Repository) -> Result<Self> {
        let bin_dir = POSTGRES.provide(repository)?;
        let mut settings = vec![
            ("STATIONMASTER_TEST_POSTGRES_BIN", bin_dir.clone()),
            (TEMPORAL_SETTING, TEMPORAL.provide(repository)?),
            (SCHEMATHESIS_SETTING, SCHEMATHESIS.provide(repository)?),
            (REDIS_SETTING, REDIS.provide(repository)?),
            (PGBOUNCER_SETTING, PGBOUNCER.provide(repository)?),
            (FAKETIME_SETTING, FAKETIME.provide(repository)?),
            (PSYCOPG_SETTING, PSYCOPG.provide(repository)?),
            (PROMETHEUS_SETTING, PROMETHEUS.provide(repository)?),
            (PROMTOOL_SETTING, PROMTOOL.provide(repository)?),
            (
                KUBERNETES_VALIDATE_SETTING,
                KUBERNETES_VALIDATE.provide(repository)?,
            ),
            (CHROMIUM_SETTING, CHROMIUM.provide(repository)?),
            (AXE_SETTING, AXE.provide(repository)?),
        ];
        let kustomize = KUSTOMIZE.find(repository)?;
        settings.extend(kustomize.map(|program| (KUSTOMIZE_SETTING, program)));
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
    let mut only_alone = Vec::new();
    for mut command in commands(repository, arguments)? {
        surroundings.given_to(&mut command);
        let Some(suite) = only_suite(&command) else {
            let status = repository::run(&mut command)?;
            if !status.success() {
                outcome = code_of(status);
            }
            continue;
        };
        let by_itself = |name: &str| {
            let mut command = repository.cargo();
            command.args(["test", "--workspace", "--test", &suite, "--", "--exact", name]);
            surroundings.given_to(&mut command);
            command
        };
        match alone::judge(&mut command, &mut std::io::stdout(), by_itself)? {
            Verdict::Passed => {}
            Verdict::PassedAlone(names) => only_alone.extend(names),
            Verdict::Failed(status) => outcome = code_of(status),
        }
    }
    for name in only_alone {
        eprintln!(
            "UNSTEADY: {name} failed beside other tests and passed alone; there is a cause to be found"
        );
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

/// Migrates large tables while work goes on, and tells what had to wait.
pub(crate) fn upgrade(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let rows = match arguments {
        [flag, version] if flag == "--keep" => return keep_dump(repository, version),
        [flag, binary] if flag == "--from" => return side_by_side(repository, binary),
        [] => "5000000",
        [flag, rows] if flag == "--rows" && rows.parse::<u64>().is_ok() => rows,
        _ => bail!("cargo xtask upgrade [--rows N | --from BINARY | --keep VERSION]"),
    };
    let arguments = [
        "--package=stationmaster",
        "--test=operations",
        &format!("--config=env.STATIONMASTER_TEST_UPGRADE_ROWS=\"{rows}\""),
        "migrations_of_each_kind",
        "--",
        "--nocapture",
    ];
    run(repository, &arguments.map(str::to_owned))
}

/// Runs the test that sends signals to one project beside work that keeps its pace, with as many as are asked for.
pub(crate) fn flood(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let signals: u64 = match arguments {
        [] => 1_000_000,
        [flag, count] if flag == "--signals" => count
            .parse()
            .with_context(|| format!("--signals cannot be {count}"))?,
        _ => bail!("cargo xtask flood [--signals N]"),
    };
    let arguments = [
        "--package=stationmaster",
        "--test=processes",
        &format!("--config=env.STATIONMASTER_FLOOD_SIGNALS=\"{signals}\""),
        "--",
        "crowds::the_flood_of_signals_that_was_asked_for",
        "--exact",
        "--ignored",
        "--nocapture",
    ];
    run(repository, &arguments.map(str::to_owned))
}

/// A server of another version, by its binary, and one of this version work on the same tables while they move on.
fn side_by_side(repository: &Repository, binary: &str) -> Result<ExitCode> {
    let binary = std::path::absolute(binary)?;
    let arguments = [
        "--package=stationmaster",
        "--test=operations",
        &format!(
            "--config=env.STATIONMASTER_TEST_BINARY_BEFORE=\"{}\"",
            binary.display()
        ),
        "--",
        "upgrades::servers_of_the_version_before_and_of_this_one_work_side_by_side",
        "--exact",
        "--ignored",
        "--nocapture",
    ];
    run(repository, &arguments.map(str::to_owned))
}

/// Keeps a dump of the tables as this version makes them, with something in each: from then on it has to go through every migration.
fn keep_dump(repository: &Repository, version: &str) -> Result<ExitCode> {
    let arguments = [
        "--package=stationmaster",
        "--test=operations",
        &format!("--config=env.STATIONMASTER_TEST_KEEP_DUMP=\"{version}\""),
        "a_dump_of_each_version",
    ];
    run(repository, &arguments.map(str::to_owned))
}

/// Makes pictures of the dashboard, for the documents; or of every page, for whoever wants to look at them, into a folder.
pub(crate) fn pictures(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let (folder, test) = match arguments.first() {
        Some(folder) => (PathBuf::from(folder), "every_page_is_pictured_whole"),
        None => (
            repository.root.join("docs/pictures"),
            "pictures_of_the_main_pages",
        ),
    };
    let arguments = [
        "--package=stationmaster",
        "--test=dashboard",
        &format!("--config=env.STATIONMASTER_PICTURES=\"{}\"", folder.display()),
        test,
        "--",
        "--ignored",
        "--nocapture",
    ];
    run(repository, &arguments.map(str::to_owned))
}

/// Times every page of the dashboard where there is very much (with `--binary PATH`, of that binary), or keeps the pages open for so many
/// minutes and tells what they hold (`--open MINUTES`).
pub(crate) fn pages(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let mut settings = Vec::new();
    let mut test = "every_page_is_timed_where_there_is_very_much";
    for pair in arguments.chunks(2) {
        let [name, value] = pair else {
            bail!("{} needs a value", pair[0]);
        };
        match name.as_str() {
            "--binary" => settings.push(format!("--config=env.STATIONMASTER_TEST_BINARY=\"{value}\"")),
            "--open" => {
                test = "pages_left_open_hold_no_more_than_at_first";
                settings.push(format!("--config=env.STATIONMASTER_PAGES_OPEN=\"{value}\""));
            }
            _ => bail!("there is no flag {name}: --binary PATH, --open MINUTES"),
        }
    }
    let mut all: Vec<String> = ["--package=stationmaster", "--test=dashboard"]
        .map(str::to_owned)
        .into();
    all.extend(settings);
    all.extend([test, "--", "--ignored", "--nocapture"].map(str::to_owned));
    run(repository, &all)
}

/// The suite that a command runs, if it is one of those that wait and nothing else.
fn only_suite(command: &Command) -> Option<String> {
    let words: Vec<&str> = command.get_args().filter_map(OsStr::to_str).collect();
    match words[..] {
        ["test", "--no-fail-fast", "--workspace", "--test", suite] if WAITING.contains(&suite) => {
            Some(suite.to_owned())
        }
        _ => None,
    }
}

/// One run for the targets, one for each suite that mostly waits, and one for the examples in the documentation, which cargo cannot
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
        if !WAITING.contains(&name.as_str()) {
            busy.extend(["--test".to_owned(), name]);
        }
    }
    let abreast = |kind: &[String], at_least: usize| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut command = command(kind);
        command.env("RUST_TEST_THREADS", at_least.max(cores).to_string());
        command
    };
    let mut all = vec![abreast(&busy, BUSY_ABREAST)];
    all.extend(WAITING.map(|name| abreast(&owned(&["--test", name]), WAITING_ABREAST)));
    all.push(documentation);
    Ok(all)
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
            let [busy, waiting @ .., documentation] = &typed(arguments)[..] else {
                panic!("there are several");
            };
            let given: String = arguments.iter().flat_map(|argument| [" ", argument]).collect();
            let suites = busy
                .strip_prefix("test --no-fail-fast --workspace --lib --bins --examples --benches ")
                .unwrap();
            let times = |suite| suites.split_whitespace().filter(|word| *word == suite).count();
            for suite in ["api", "cli", "executions", "idle"] {
                assert_eq!(times(suite), 1, "{suite}: {suites}");
            }
            assert_eq!(WAITING.map(times), [0; 4], "{suites}");
            let each = WAITING.map(|name| format!("test --no-fail-fast --workspace --test {name}{given}"));
            assert_eq!(waiting, each);
            assert_eq!(
                *documentation,
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
