//! The doctor: looks at everything that Stationmaster stands on and says what it saw, how bad it is, and what to do.
//!
//! Each check is a small function, and all of them run at once towards one deadline, so the whole is over within five seconds,
//! whoever does not answer. The command `doctor` runs it where it is, and so does a server for whoever asks it: the same checks, seen from
//! where the server stands.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Once};
use std::time::Duration;

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use stationmaster_client::wire::{Examination, Finding, Severity};
use stationmaster_core::task::{chain, panic_message};
use tokio::time::{Instant, timeout, timeout_at};

use crate::config::Config;

mod database;
mod outside;
mod owners;
mod pooler;
mod servers;
mod tables;
mod work;

/// Everything is looked at within this time.
const PATIENCE: Duration = Duration::from_secs(4);
/// A first answer is waited for no longer; the rest is for what is asked then.
const REACH: Duration = Duration::from_secs(2);

/// When this doctor has seen enough.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant);

impl Deadline {
    fn new() -> Self {
        Self(Instant::now() + PATIENCE)
    }

    /// What is left of the time, for one question after others.
    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// In order.
pub(crate) fn ok(id: &str, seen: impl Into<String>) -> Finding {
    Finding {
        id: id.to_owned(),
        severity: Severity::Ok,
        seen: seen.into(),
        advice: None,
    }
}

fn not_ok(severity: Severity, id: &str, seen: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding {
        advice: Some(advice.into()),
        severity,
        ..ok(id, seen)
    }
}

/// Good to know.
pub(crate) fn note(id: &str, seen: impl Into<String>, advice: impl Into<String>) -> Finding {
    not_ok(Severity::Note, id, seen, advice)
}

/// Will hurt some day, or hurts a little.
pub(crate) fn warning(id: &str, seen: impl Into<String>, advice: impl Into<String>) -> Finding {
    not_ok(Severity::Warning, id, seen, advice)
}

/// Does not work like this.
pub(crate) fn problem(id: &str, seen: impl Into<String>, advice: impl Into<String>) -> Finding {
    not_ok(Severity::Problem, id, seen, advice)
}

/// What was seen, and how bad the worst of it is.
pub(crate) fn examination(findings: Vec<Finding>) -> Examination {
    let worst = findings.iter().map(|finding| finding.severity).max();
    Examination {
        worst: worst.unwrap_or(Severity::Ok),
        findings,
    }
}

/// Looks at everything, from here.
pub(crate) async fn examine(config: &Arc<Config>, actor: &str) -> Examination {
    silence_what_is_told();
    let deadline = Deadline::new();
    let (inside, outside) = tokio::join!(
        database::look(config, actor, deadline),
        outside::look(config, deadline)
    );
    examination([inside, outside].concat())
}

/// What one check comes to.
type Check<'a> = BoxFuture<'a, Vec<Finding>>;

/// What a look brings: one finding or several, or that whoever was asked refused.
trait Look: Send {
    fn findings(self, id: &'static str) -> Vec<Finding>;
}

impl Look for Finding {
    fn findings(self, _: &'static str) -> Vec<Finding> {
        vec![self]
    }
}

impl Look for Vec<Finding> {
    fn findings(self, _: &'static str) -> Vec<Finding> {
        self
    }
}

impl<L: Look, E: Into<anyhow::Error> + Send> Look for Result<L, E> {
    fn findings(self, id: &'static str) -> Vec<Finding> {
        match self {
            Ok(look) => look.findings(id),
            Err(error) => {
                let advice = "The database's own log may tell more";
                vec![warning(id, chain(error.into().as_ref()), advice)]
            }
        }
    }
}

/// A check with its deadline, under the name of what it asks about.
fn within<'a, L: Look>(
    deadline: Deadline,
    id: &'static str,
    look: impl Future<Output = L> + Send + 'a,
) -> Check<'a> {
    async move {
        match timeout_at(deadline.0, survived(look)).await {
            Ok(Ok(look)) => look.findings(id),
            Ok(Err(panic)) => vec![panicked(id, &panic)],
            Err(_) => vec![silence(id)],
        }
    }
    .boxed()
}

tokio::task_local! {
    /// Here a panic is told as a finding.
    static TOLD: ();
}

/// What a look comes to, or with what words it panicked. Whatever is wrong with what the doctor looks at, the doctor says it.
async fn survived<T>(look: impl Future<Output = T>) -> Result<T, String> {
    let look = TOLD.scope((), AssertUnwindSafe(look).catch_unwind());
    look.await.map_err(|panic| panic_message(&*panic))
}

/// A panic that is told as a finding is not told a second time, among what the report is printed on.
fn silence_what_is_told() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if TOLD.try_with(|()| ()).is_err() {
                usual(panic);
            }
        }));
    });
}

/// The check came to no end. What makes the driver of the database panic is an answer to another question than the one asked.
fn panicked(id: &'static str, words: &str) -> Finding {
    let advice = "Mend what database.pooler says: by another's prepared statement the answer is not to what was asked. If it says nothing, this is \
                  a fault of this program: please report it";
    problem(id, format!("the check broke off (panic: {words})"), advice)
}

/// Whoever was asked did not answer.
fn silence(id: &'static str) -> Finding {
    let advice = "Is it overloaded, or does somebody hold a lock on what it asks for? Ask again";
    warning(id, "no answer in time", advice)
}

/// Runs checks at once, in the order in which they are told.
async fn all(checks: Vec<Check<'_>>) -> Vec<Finding> {
    join_all(checks).await.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_that_panics_is_a_finding_and_the_others_are_told_too() {
        silence_what_is_told();
        let row: Vec<u8> = Vec::new();
        let breaks = async move { ok("breaks", format!("{}", row[usize::from(row.is_empty())])) };
        let checks = vec![
            within(Deadline::new(), "breaks", breaks),
            within(Deadline::new(), "works", async { ok("works", "fine") }),
        ];
        let findings = all(checks).await;
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert_eq!(findings[0].severity, Severity::Problem, "{findings:?}");
        assert!(findings[0].seen.contains("index out of bounds"), "{findings:?}");
        assert_eq!(findings[1].severity, Severity::Ok, "{findings:?}");
    }
}
