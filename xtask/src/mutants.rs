//! `cargo xtask mutants`: changes the pure modules in small ways, one at a time, and counts how many changes a test notices. Slow, so
//! it is run by group, and a part of a group (`--part 1/4`) says much about the whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::repository::{Repository, run as run_program};
use crate::twins::copy;

/// So many of a hundred must be noticed.
const WANTED: usize = 85;

/// Files that are changed together: a name, the package, the files, and how its tests are asked.
type Group = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// What is pure in files that also ask the database, which needs tests of another kind: by what stands in the name of a change.
const PURE_PARTS: [(&str, &str); 2] = [
    (
        "told",
        "Facts|fold|meant|among|resembling|Range|spelled|one_in|spread|quantile|approximate|range",
    ),
    (
        "late",
        "Late|just_before|signed|words|wait|table|due|first_after|Policy",
    ),
];

const GROUPS: [Group; 9] = [
    (
        "cron",
        "stationmaster-schedule",
        &["crates/schedule/src/cron/*.rs"],
        &["--lib"],
    ),
    (
        "calendar",
        "stationmaster-schedule",
        &[
            "crates/schedule/src/calendar.rs",
            "crates/schedule/src/clock.rs",
            "crates/schedule/src/series.rs",
            "crates/schedule/src/resolve.rs",
            "crates/schedule/src/values.rs",
            "crates/schedule/src/zone.rs",
        ],
        &["--lib", "--test", "facts", "--test", "properties"],
    ),
    (
        "describe",
        "stationmaster-schedule",
        &["crates/schedule/src/describe.rs", "crates/schedule/src/dst.rs"],
        &["--lib", "--test", "guide"],
    ),
    (
        "wire",
        "stationmaster-wire",
        &["crates/wire/src/*.rs"],
        &["--lib"],
    ),
    (
        "core",
        "stationmaster-core",
        &[
            "crates/core/src/graph.rs",
            "crates/core/src/retry.rs",
            "crates/core/src/pages.rs",
            "crates/core/src/hosts.rs",
            "crates/core/src/capacity.rs",
            "crates/core/src/id/*.rs",
        ],
        &["--lib"],
    ),
    (
        "told",
        "stationmaster-core",
        &[
            "crates/core/src/names.rs",
            "crates/core/src/names/range.rs",
            "crates/core/src/history.rs",
            "crates/core/src/failures/mod.rs",
            "crates/core/src/executions/inspect.rs",
        ],
        &["--lib"],
    ),
    (
        "late",
        "stationmaster-core",
        &[
            "crates/core/src/alarms/ladder.rs",
            "crates/core/src/alarms/late.rs",
        ],
        &["--lib"],
    ),
    (
        "judges",
        "stationmaster-core",
        &[
            "crates/core/src/dispatchers/classify.rs",
            "crates/core/src/wake/guard.rs",
            "crates/core/src/wake/answer.rs",
        ],
        &["--lib"],
    ),
    (
        "config",
        "stationmaster",
        &["crates/server/src/config/parse.rs"],
        &["--bins"],
    ),
];

/// Runs the groups that are named, or all.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let (names, part) = match arguments {
        [names @ .., flag, part] if flag == "--part" => (names, Some(part.as_str())),
        names => (names, None),
    };
    let known = |name: &String| GROUPS.iter().any(|group| group.0 == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let groups: Vec<&str> = GROUPS.iter().map(|group| group.0).collect();
        bail!("there is no group {unknown}: {}", groups.join(", "));
    }
    let program = provide(repository)?;
    // Changed in a copy, so that nobody works on a file that is not as it was; built where the twins are, who share what is not ours.
    let scratch = Repository {
        root: repository.target.join("mutants").join("tree"),
        target: repository.target.join("twins-build"),
    };
    copy(repository, &scratch)?;
    let mut failed = false;
    for (name, package, files, tests) in GROUPS {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let output = repository.target.join("mutants").join(name);
        fs::create_dir_all(&output)?;
        let mut command = Command::new(&program);
        command
            .current_dir(&scratch.root)
            .env("CARGO_TARGET_DIR", &scratch.target)
            .args(["mutants", "--in-place", "--package", package])
            .args(["--baseline", "skip"])
            .args(["--timeout", "120", "--colors", "never", "--output"])
            .arg(&output);
        for file in files {
            command.args(["--file", file]);
        }
        for (_, pure) in PURE_PARTS.iter().filter(|(of, _)| *of == name) {
            command.args(["--re", pure]);
        }
        if let Some(part) = part {
            command.args(["--shard", part]);
        }
        command.arg("--").args(tests);
        // What it ends with tells whether anything was missed; how much may be is ours to say.
        run_program(&mut command)?;
        failed |= !enough(name, &output.join("mutants.out"))?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Counts what the run wrote down.
fn enough(name: &str, output: &Path) -> Result<bool> {
    let count = |what: &str| -> Result<usize> {
        let path = output.join(format!("{what}.txt"));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.lines().count())
    };
    // One that runs for ever was noticed too.
    let (noticed, missed) = (count("caught")? + count("timeout")?, count("missed")?);
    println!(
        "{name}: {noticed} of {} changes were noticed; see {}",
        noticed + missed,
        output.display()
    );
    Ok(noticed * 100 >= (noticed + missed) * WANTED && noticed > 0)
}

/// Installs cargo-mutants among the tools, unless it is there.
fn provide(repository: &Repository) -> Result<PathBuf> {
    let root = repository.target.join("tools").join("mutants");
    let program = root.join("bin").join("cargo-mutants");
    if !program.exists() {
        let mut install = repository.cargo();
        install.args(["install", "cargo-mutants", "--locked", "--root"]);
        if !run_program(install.arg(&root))?.success() {
            bail!("cargo-mutants could not be installed");
        }
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(caught: usize, missed: usize) -> bool {
        let folder = std::env::temp_dir().join(format!("mutants-{}-{caught}-{missed}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, lines) in [("caught", caught), ("timeout", 0), ("missed", missed)] {
            fs::write(folder.join(format!("{name}.txt")), "a change\n".repeat(lines)).unwrap();
        }
        let enough = enough("a group", &folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        enough
    }

    #[test]
    fn eighty_five_of_a_hundred_are_enough_and_none_are_not() {
        assert!(judged(85, 15));
        assert!(!judged(84, 16));
        assert!(!judged(0, 0));
    }
}
