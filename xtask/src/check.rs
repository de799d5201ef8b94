//! `cargo xtask check`: what CI runs, in the order of what fails fastest, with the time of each step.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::repository::{Repository, code_of, run as run_program};
use crate::{examples, interop, release, test, tidy};

/// A step: its name and what it does.
type Step = (&'static str, fn(&Repository) -> Result<ExitCode>);

const STEPS: [Step; 9] = [
    ("format", |repository| {
        cargo(repository, &["fmt", "--all", "--check"])
    }),
    ("clippy", |repository| {
        cargo(
            repository,
            &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        )
    }),
    ("documentation", document),
    ("tidy", tidy::run),
    ("packages", release::check),
    ("test", |repository| {
        eprintln!("  this is `cargo xtask test`");
        test::run(repository, &[])
    }),
    ("installation", release::rehearse),
    ("examples", examples::run),
    ("interop", interop::check),
];

/// Runs the steps until one fails.
pub(crate) fn run(repository: &Repository) -> Result<ExitCode> {
    let mut done = Vec::new();
    for (name, step) in STEPS {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let code = step(repository);
        let time = started.elapsed();
        eprintln!("-- {name}: {:.1} s", time.as_secs_f64());
        done.push((name, time));
        match code {
            Ok(ExitCode::SUCCESS) => {}
            failed => {
                summarise(&done, Some(name));
                return failed;
            }
        }
    }
    summarise(&done, None);
    Ok(ExitCode::SUCCESS)
}

fn cargo(repository: &Repository, arguments: &[&str]) -> Result<ExitCode> {
    run_program(repository.cargo().args(arguments)).map(code_of)
}

fn document(repository: &Repository) -> Result<ExitCode> {
    let mut command = repository.cargo();
    command
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    run_program(&mut command).map(code_of)
}

fn summarise(done: &[(&str, Duration)], failed: Option<&str>) {
    eprintln!();
    for &(name, time) in done {
        let outcome = if failed == Some(name) { "FAILED" } else { "ok" };
        eprintln!("{name:<16}{:>8.1} s  {outcome}", time.as_secs_f64());
    }
    match failed {
        Some(name) => eprintln!("check failed at: {name}"),
        None => eprintln!("check passed"),
    }
}
