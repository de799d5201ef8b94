//! Tests that fail beside others are judged once more, alone.
//!
//! The suites of real processes hold times: a server claims again within ten seconds, an idle one takes so much of a core. Side by
//! side on a small machine such a time is also that of the neighbours. So what fails there is run a second time with the machine to
//! itself, and that decides. It is no way to live with a flaky test: each such name is said at the end, and more than a few of them fail the
//! run whatever they do alone.

use std::io::{BufRead as _, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result};

use crate::repository::{self, words};

/// More failures than this are no neighbours' doing.
const AT_MOST: usize = 5;

/// What became of a suite.
pub(crate) enum Verdict {
    Passed,
    /// These failed beside others and passed alone.
    PassedAlone(Vec<String>),
    Failed(ExitStatus),
}

/// Runs a suite, which is shown as it goes; what fails in it is run again by what `alone` makes of its name.
pub(crate) fn judge(
    command: &mut Command,
    shown: &mut impl Write,
    alone: impl Fn(&str) -> Command,
) -> Result<Verdict> {
    let (status, failed) = failures(command, shown)?;
    if status.success() {
        return Ok(Verdict::Passed);
    }
    if failed.is_empty() || failed.len() > AT_MOST {
        return Ok(Verdict::Failed(status));
    }
    for name in &failed {
        eprintln!("{name} failed beside others: once more, alone");
        let status = repository::run(&mut alone(name))?;
        if !status.success() {
            return Ok(Verdict::Failed(status));
        }
    }
    Ok(Verdict::PassedAlone(failed))
}

/// Runs a command of tests, shows what it prints as it comes, and answers the names of those that failed.
fn failures(command: &mut Command, shown: &mut impl Write) -> Result<(ExitStatus, Vec<String>)> {
    eprintln!("  $ {}", words(command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{}`", words(command)))?;
    let printed = child.stdout.take().context("the tests print")?;
    let mut failed = Vec::new();
    for line in BufReader::new(printed).split(b'\n') {
        let line = line?;
        shown.write_all(&line)?;
        shown.write_all(b"\n")?;
        failed.extend(name_of_failure(&String::from_utf8_lossy(&line)).map(str::to_owned));
    }
    Ok((child.wait()?, failed))
}

/// The name in a line of the test harness which says that a test failed.
fn name_of_failure(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    (!name.contains(' ')).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::io::sink;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const ONE_FAILS: &str = "echo 'test a::b ... ok'; echo 'test a::c ... FAILED'; exit 101";

    #[test]
    fn lines_of_the_harness_are_told_from_those_of_tests() {
        assert_eq!(name_of_failure("test a::b ... FAILED"), Some("a::b"));
        for line in [
            "test a::b ... ok",
            "test result: FAILED. 1 passed",
            "test a b ... FAILED",
            "FAILED",
        ] {
            assert_eq!(name_of_failure(line), None, "{line}");
        }
    }

    #[test]
    fn what_fails_beside_others_is_judged_alone() {
        let mut shown = Vec::new();
        let passed = judge(
            &mut shell("echo 'test a::b ... ok'"),
            &mut shown,
            |_| unreachable!(),
        )
        .unwrap();
        assert_eq!(shown, b"test a::b ... ok\n");
        assert!(matches!(passed, Verdict::Passed));
        let verdict = judge(&mut shell(ONE_FAILS), &mut sink(), |name| {
            shell(&format!("test {name} = a::c"))
        })
        .unwrap();
        assert!(matches!(verdict, Verdict::PassedAlone(names) if names == ["a::c"]));
        let verdict = judge(&mut shell(ONE_FAILS), &mut sink(), |_| shell("exit 101")).unwrap();
        assert!(matches!(verdict, Verdict::Failed(status) if status.code() == Some(101)));
    }

    #[test]
    fn many_failures_and_those_without_a_name_fail_at_once() {
        let many = "for n in 1 2 3 4 5 6; do echo \"test t$n ... FAILED\"; done; exit 101";
        for script in [many, "exit 101"] {
            let verdict = judge(&mut shell(script), &mut sink(), |_| unreachable!()).unwrap();
            assert!(matches!(verdict, Verdict::Failed(_)), "{script}");
        }
    }
}
