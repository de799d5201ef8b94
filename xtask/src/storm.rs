//! `cargo xtask storm`: everything at once, for as long as one likes, by a seed. The storm itself is a test of the server, of which a
//! short one with a fixed seed runs with the others.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::components::{POSTGRES, TEMPORAL, TEMPORAL_SETTING};
use crate::repository::{Repository, words};

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Storm {
    minutes: f64,
    seed: u64,
    servers: usize,
    engine: String,
    json: bool,
}

/// Runs it; the code is 1 when a promise was broken.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let storm = Storm::read(arguments)?;
    let report = repository.target.join("storm.json");
    // A report of another storm must not be taken for this one's.
    if report.exists() {
        std::fs::remove_file(&report)?;
    }
    let mut command = repository.cargo();
    command
        .args(["test", "--package", "stationmaster", "--test", "storm", "--"])
        .args([
            "the_storm_that_was_asked_for",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("STATIONMASTER_TEST_POSTGRES_BIN", POSTGRES.provide(repository)?)
        .env(TEMPORAL_SETTING, TEMPORAL.provide(repository)?)
        .env(
            "STATIONMASTER_STORM_SECONDS",
            format!("{:.0}", storm.minutes * 60.0),
        )
        .env("STATIONMASTER_STORM_SEED", storm.seed.to_string())
        .env("STATIONMASTER_STORM_SERVERS", storm.servers.to_string())
        .env("STATIONMASTER_STORM_ENGINE", &storm.engine)
        .env("STATIONMASTER_STORM_REPORT", &report)
        // What the test's own frame prints is of no use to anybody who asked for a storm.
        .stdout(Stdio::null());
    eprintln!("  $ {}", words(&command));
    let status = command
        .status()
        .with_context(|| format!("cannot run `{}`", words(&command)))?;
    if storm.json {
        print!(
            "{}",
            std::fs::read_to_string(&report).context("the storm ended without a report")?
        );
    }
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        eprintln!(
            "again: cargo xtask storm --minutes {} --seed {} --servers {} --engine {}",
            storm.minutes, storm.seed, storm.servers, storm.engine
        );
        ExitCode::FAILURE
    })
}

impl Storm {
    fn read(arguments: &[String]) -> Result<Self> {
        let mut storm = Self {
            minutes: 5.0,
            seed: RandomState::new().build_hasher().finish(),
            servers: 4,
            engine: "embedded".to_owned(),
            json: false,
        };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            if name == "--json" {
                storm.json = true;
                continue;
            }
            let value = arguments
                .next()
                .with_context(|| format!("{name} needs a value, or there is no such flag"))?;
            let wrong = || format!("{name} cannot be {value}");
            match name.as_str() {
                "--minutes" => storm.minutes = value.parse().with_context(wrong)?,
                "--seed" => storm.seed = value.parse().with_context(wrong)?,
                "--servers" => storm.servers = value.parse().with_context(wrong)?,
                "--engine" if ["embedded", "temporal"].contains(&value.as_str()) => {
                    storm.engine.clone_from(value);
                }
                "--engine" => bail!("--engine is embedded or temporal"),
                _ => bail!("there is no flag {name}: --minutes, --seed, --servers, --engine, --json"),
            }
        }
        if storm.servers == 0 || !(0.1..=1_440.0).contains(&storm.minutes) {
            bail!("a storm has at least one server, and lasts from six seconds to a day");
        }
        Ok(storm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Storm> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Storm::read(&words)
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let storm = read("--minutes 0.5 --seed 3 --servers 2 --engine temporal --json").unwrap();
        let wanted = Storm {
            minutes: 0.5,
            seed: 3,
            servers: 2,
            engine: "temporal".to_owned(),
            json: true,
        };
        assert_eq!(storm, wanted);
        assert_eq!(read("").unwrap().engine, "embedded");
    }

    #[test]
    fn what_makes_no_storm_is_refused() {
        for line in [
            "--seed",
            "--seed x",
            "--wind 3",
            "--engine steam",
            "--servers 0",
            "--minutes 0",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
