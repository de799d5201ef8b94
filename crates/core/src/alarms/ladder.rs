//! The ladder: how long after a failed try the next one comes. Pure. The table in docs/guides/alarms.md is printed from here.

use std::fmt::Write as _;
use std::time::Duration;

use rand::RngExt as _;

use crate::retry::Backoff;

/// The steps: 30 s doubling to 15 min.
pub const LADDER: Backoff = Backoff {
    base: Duration::from_secs(30),
    cap: Duration::from_mins(15),
};
/// Of a step, what chance may add: many who failed together do not come back together.
const JITTER: f64 = 0.1;
/// Shown in the table.
const SHOWN: u32 = 8;

/// The wait after the `failures`-th failed try (counted from 1): never sooner than the step, nor than the target asked for.
#[must_use]
pub fn wait(failures: u32, asked_for: Option<Duration>) -> Duration {
    let step = LADDER.step(failures);
    step.max(asked_for.unwrap_or_default()) + step.mul_f64(rand::rng().random_range(0.0..=JITTER))
}

/// The ladder as a table of Markdown.
#[must_use]
pub fn table() -> String {
    let mut text =
        String::from("| failed try | next try after | since the first try, at least |\n|---|---|---|\n");
    let mut since = Duration::ZERO;
    for failures in 1..=SHOWN {
        let step = LADDER.step(failures);
        since += step;
        // Writing into a String does not fail.
        let _ = writeln!(text, "| {failures} | {} | {} |", words(step), words(since));
    }
    text
}

fn words(duration: Duration) -> String {
    match (duration.as_secs() / 60, duration.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_those_of_the_specification() {
        let steps: Vec<u64> = (1..=8).map(|failures| LADDER.step(failures).as_secs()).collect();
        assert_eq!(steps, [30, 60, 120, 240, 480, 900, 900, 900]);
    }

    #[test]
    fn a_wait_is_at_least_its_step_and_at_least_what_the_target_asked_for() {
        for failures in 1..10 {
            let (step, waited) = (LADDER.step(failures), wait(failures, None));
            assert!(
                waited >= step && waited <= step.mul_f64(1.0 + JITTER),
                "{failures}: {waited:?}"
            );
        }
        let asked = Duration::from_hours(1);
        assert!(wait(1, Some(asked)) >= asked);
        assert!(wait(6, Some(Duration::from_secs(1))) >= LADDER.cap);
    }

    #[test]
    fn the_table_in_the_guide_is_the_one_of_the_code() {
        let guide = include_str!("../../../../docs/guides/alarms.md");
        assert!(
            guide.contains(&table()),
            "docs/guides/alarms.md needs this table:\n{}",
            table()
        );
    }
}
