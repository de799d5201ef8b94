//! `cargo xtask twins`: takes one guard out at a time and asks the test that should notice. A test that passes with its guard gone
//! guards nothing. Each twin is the repository with one textual edit, in a scratch copy with a target folder for all twins, so that only
//! what the edit touches is built again. Too slow for every day; that every edit still fits and every test is there is a rule of `tidy`.

mod list;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::repository::{Repository, printed};
use crate::test::Surroundings;

pub(crate) use list::TWINS;

/// A test that has not ended by then has noticed something.
const PATIENCE: Duration = Duration::from_mins(6);

/// The repository without one guard.
pub(crate) struct Twin {
    /// What people call it, and what is gone.
    pub(crate) name: &'static str,
    /// The file, from the root.
    pub(crate) file: &'static str,
    /// What stands there, once.
    pub(crate) find: &'static str,
    /// What stands there in the twin.
    pub(crate) put: &'static str,
    /// Where the test is: its package, and the name of the target, or `lib`.
    pub(crate) place: (&'static str, &'static str),
    /// The test that must fail: the path within its target.
    pub(crate) test: &'static str,
}

impl Twin {
    /// The file as the twin has it; `None`: the edit does not fit any more.
    pub(crate) fn edited(&self, text: &str) -> Option<String> {
        (text.matches(self.find).count() == 1 && self.find != self.put)
            .then(|| text.replacen(self.find, self.put, 1))
    }

    /// The name of the test, and the file that it stands in: one named like its module; `main` without one.
    pub(crate) fn stands_in(&self) -> (&'static str, String) {
        let folder = match self.place.0 {
            "stationmaster" => "crates/server",
            "stationmaster-core" => "crates/core",
            "stationmaster-temporal" => "crates/temporal",
            other => other,
        };
        let (module, name) = self.test.rsplit_once("::").unwrap_or(("main", self.test));
        let module = module.trim_end_matches("::tests").replace("::", "/");
        let file = match self.place.1 {
            "lib" => format!("{folder}/src/{module}.rs"),
            target => format!("{folder}/tests/{target}/{module}.rs"),
        };
        (name, file)
    }
}

/// What the test said.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Noticed(String),
    Passed,
    /// It could not be asked.
    Unheard(String),
}

/// Runs all twins, or those whose name holds one of the words after `--only`.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let wanted = match arguments {
        [] => &[],
        [only, names @ ..] if only == "--only" && !names.is_empty() => names,
        _ => bail!("cargo xtask twins [--only NAME ...]"),
    };
    let is_asked = |twin: &&Twin| wanted.is_empty() || wanted.iter().any(|name| twin.name.contains(name));
    let chosen: Vec<&Twin> = TWINS.iter().filter(is_asked).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TWINS.iter().map(|twin| twin.name).collect();
        bail!("there is no twin {}: {}", wanted.join(" or "), names.join(", "));
    }
    let scratch = Repository {
        root: repository.target.join("twins"),
        // Cargo names what it builds alike in both trees: in one folder they would replace each other's programs.
        target: repository.target.join("twins-build"),
    };
    copy(repository, &scratch)?;
    let surroundings = Surroundings::provide(repository)?;
    let mut survived = 0;
    let mut lines = Vec::new();
    for twin in chosen {
        eprintln!("\n== without {}: {}", twin.name, twin.test);
        let begun = Instant::now();
        let verdict = ask(&scratch, &surroundings, twin)?;
        let (word, detail) = match verdict {
            Verdict::Noticed(how) => ("killed", how),
            Verdict::Passed => ("SURVIVED", format!("{} passes without it", twin.test)),
            Verdict::Unheard(why) => ("UNKNOWN", why),
        };
        survived += usize::from(word != "killed");
        let line = format!(
            "{word:<9} {:<34} {:>5.0} s  {detail}",
            twin.name,
            begun.elapsed().as_secs_f64()
        );
        eprintln!("{line}");
        lines.push(line);
    }
    println!("{}", lines.join("\n"));
    println!("{} twins, {} survived", lines.len(), survived);
    Ok(if survived == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Brings a scratch copy up to date, and leaves alone what is: cargo goes by the age of files.
pub(crate) fn copy(repository: &Repository, scratch: &Repository) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(&repository.root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    for name in printed(&mut git)?.lines() {
        let (from, to) = (repository.root.join(name), scratch.root.join(name));
        // What was deleted and not yet committed is still listed.
        let Ok(text) = fs::read(&from) else {
            continue;
        };
        if fs::read(&to).is_ok_and(|there| there == text) {
            continue;
        }
        let folder = to.parent().context("a file has a folder")?;
        fs::create_dir_all(folder)?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

/// Applies the edit, asks the test, and takes the edit back.
fn ask(scratch: &Repository, surroundings: &Surroundings, twin: &Twin) -> Result<Verdict> {
    let path = scratch.root.join(twin.file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", twin.file))?;
    let Some(edited) = twin.edited(&text) else {
        return Ok(Verdict::Unheard(format!("the edit no longer fits {}", twin.file)));
    };
    fs::write(&path, edited)?;
    let verdict = test(scratch, surroundings, twin);
    fs::write(&path, text)?;
    verdict
}

fn test(scratch: &Repository, surroundings: &Surroundings, twin: &Twin) -> Result<Verdict> {
    let cargo = |last: &[&str]| {
        let mut command = scratch.cargo();
        command
            .args(["test", "--package", twin.place.0])
            .args(match twin.place.1 {
                "lib" => vec!["--lib"],
                target => vec!["--test", target],
            })
            .args(last)
            .env("CARGO_TARGET_DIR", &scratch.target);
        surroundings.given_to(&mut command);
        command
    };
    // A twin that does not compile says nothing about its test.
    if !cargo(&["--no-run", "--quiet"]).status()?.success() {
        return Ok(Verdict::Unheard("it does not compile".to_owned()));
    }
    let log = scratch.root.join("said");
    let ended = to_its_end(&mut cargo(&["--", twin.test, "--exact", "--nocapture"]), &log)?;
    let said = fs::read_to_string(&log).unwrap_or_default();
    Ok(judge(ended, &said))
}

/// Whether it ended well; `None`: it did not end.
fn to_its_end(command: &mut Command, log: &Path) -> Result<Option<bool>> {
    let file = fs::File::create(log)?;
    let mut child = command
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0)
        .spawn()?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        thread::sleep(Duration::from_millis(200));
    }
    killpg(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGKILL)?;
    child.wait()?;
    Ok(None)
}

fn judge(ended: Option<bool>, said: &str) -> Verdict {
    if !said.contains("running 1 test") {
        return Verdict::Unheard("there is no such test".to_owned());
    }
    match ended {
        Some(true) => Verdict::Passed,
        Some(false) if said.contains("test result: FAILED") => {
            let words = said.split_once("panicked at").map(|(_, rest)| rest);
            let words = words.and_then(|rest| rest.lines().nth(1)).unwrap_or_default();
            Verdict::Noticed(words.chars().take(120).collect())
        }
        Some(false) => Verdict::Unheard("the test ended in an odd way".to_owned()),
        None => Verdict::Noticed(format!("it did not end within {PATIENCE:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_ran_and_failed_has_noticed_anything() {
        let failed =
            "running 1 test\nthread 'x' panicked at tests/x.rs:3:5:\nleft: 1\ntest result: FAILED. 0 passed";
        assert_eq!(judge(Some(false), failed), Verdict::Noticed("left: 1".to_owned()));
        assert_eq!(
            judge(Some(true), "running 1 test\ntest result: ok"),
            Verdict::Passed
        );
        assert!(matches!(
            judge(Some(false), "error: no target"),
            Verdict::Unheard(_)
        ));
        assert!(matches!(
            judge(Some(true), "running 0 tests\ntest result: ok"),
            Verdict::Unheard(_)
        ));
        assert!(matches!(judge(None, "running 1 test"), Verdict::Noticed(_)));
    }

    #[test]
    fn an_edit_that_fits_in_two_places_or_in_none_is_no_edit() {
        let twin = Twin {
            name: "a",
            file: "b",
            find: "for update",
            put: "",
            place: ("stationmaster-core", "c"),
            test: "d",
        };
        assert_eq!(twin.edited("select 1 for update").as_deref(), Some("select 1 "));
        assert_eq!(twin.edited("for update, for update"), None);
        assert_eq!(twin.edited("for share"), None);
    }
}
