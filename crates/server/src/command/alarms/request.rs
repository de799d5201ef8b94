//! What `set` and `edit` share: when an alarm fires, what its wake says, and its policies, as arguments.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::value::RawValue;
use stationmaster_client::wire::{Dst, Misfire, Overlap};
use stationmaster_schedule::{Cron, zone};

use super::next::DST;
use crate::command::arguments::{duration, explained, json_given, text, word_of};
use crate::command::times::future;
use crate::failure::{BadExpression, Refusal};

/// When it fires: one of these.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct WhenArgs {
    /// Once, at this time
    #[arg(long, value_name = "TIME", value_parser = future, allow_hyphen_values = true)]
    at: Option<Timestamp>,
    /// Once, after this much time
    #[arg(long = "in", id = "after", value_name = "DURATION", value_parser = duration)]
    after: Option<Duration>,
    /// Once, when the clocks of --zone show this time, as in 2026-03-29T02:30
    #[arg(long, value_name = "TIME", value_parser = civil, requires = "zone")]
    civil: Option<DateTime>,
    /// Again and again, by this cron expression in --zone
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
}

fn civil(text: &str) -> Result<DateTime, String> {
    text.parse()
        .map_err(|_| "not a local time: write it like 2026-03-29T02:30".to_owned())
}

impl WhenArgs {
    /// What was said, checked as far as that can be done here: whoever typed it is shown the place.
    pub(super) fn when(self, zone_name: Option<String>) -> Result<When> {
        if let Some(text) = &self.cron {
            Cron::parse(text).map_err(|error| BadExpression {
                text: text.clone(),
                error,
            })?;
        }
        if let Some(name) = &zone_name {
            zone(name)?;
        }
        Ok(When {
            fire_at: self.at,
            delay: self.after.map(|after| after.as_secs_f64()),
            civil_at: self.civil.map(|at| at.to_string()),
            cron_expr: self.cron,
            timezone: zone_name,
        })
    }
}

/// When it fires, as it is told on the wire.
pub(super) struct When {
    pub(super) fire_at: Option<Timestamp>,
    pub(super) delay: Option<f64>,
    pub(super) civil_at: Option<String>,
    pub(super) cron_expr: Option<String>,
    pub(super) timezone: Option<String>,
}

impl When {
    /// Nobody said when.
    pub(super) fn is_silent(&self) -> bool {
        self.fire_at.is_none() && self.delay.is_none() && self.civil_at.is_none() && self.cron_expr.is_none()
    }
}

/// What the wake says, and where it goes.
#[derive(Debug, Args)]
pub(super) struct WakeArgs {
    /// A name by which it can be referred to, unique in its workspace
    #[arg(long, value_name = "NAME", value_parser = text)]
    pub(super) name: Option<String>,
    /// What people call it
    #[arg(long)]
    pub(super) label: Option<String>,
    /// The IANA time zone of --cron or --civil; UTC, or the one that the alarm has, when left out
    #[arg(long)]
    pub(super) zone: Option<String>,
    /// Where the wake goes; to the router (the setting `alarms.router_url`) when left out
    #[arg(long, alias = "target-url", value_name = "URL")]
    pub(super) target: Option<String>,
    /// The message in the wake
    #[arg(long)]
    pub(super) message: Option<String>,
    /// The payload in the wake, as JSON; sent as it is written
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// The file that holds the payload; - for the standard input
    #[arg(long, value_name = "FILE")]
    payload_file: Option<String>,
    /// The user in the wake; the workspace's id when left out
    #[arg(long, value_name = "ID", value_parser = text)]
    pub(super) user: Option<String>,
    /// The conversation in the wake
    #[arg(long, value_name = "ID", value_parser = text)]
    pub(super) conversation: Option<String>,
}

impl WakeArgs {
    pub(super) fn payload(&self) -> Result<Option<Box<RawValue>>> {
        json_given("the payload", self.payload.clone(), self.payload_file.as_deref())
    }
}

/// What happens when something does not go as planned.
#[derive(Debug, Args)]
pub(super) struct PolicyArgs {
    /// Tries before an occurrence fails; the setting `alarms.max_failures` when left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) max_failures: Option<u32>,
    /// What happens to occurrences that were missed
    #[arg(long, value_parser = word_of::<Misfire>(explained(&MISFIRE)), ignore_case = true)]
    misfire: Option<Misfire>,
    /// How many of them, with --misfire `catch_up` (10 when left out)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    catch_up: Option<u32>,
    /// How far back they are made up for; the setting `alarms.misfire_window` when left out
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) misfire_window: Option<Duration>,
    /// What happens to an occurrence that comes while an earlier one is not settled
    #[arg(long, value_parser = word_of::<Overlap>(explained(&OVERLAP)), ignore_case = true)]
    pub(super) overlap: Option<Overlap>,
    /// What becomes of fixed local times that do not exist or come twice
    #[arg(long, value_parser = word_of::<Dst>(explained(&DST)), ignore_case = true)]
    pub(super) dst: Option<Dst>,
    /// Each occurrence is due up to so much later, always by the same amount
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) jitter: Option<Duration>,
    /// The series begins not before this time
    #[arg(long, value_name = "TIME", value_parser = future, allow_hyphen_values = true)]
    pub(super) start: Option<Timestamp>,
    /// The series ends not after this time
    #[arg(long, value_name = "TIME", value_parser = future, allow_hyphen_values = true)]
    pub(super) end: Option<Timestamp>,
    /// Pause the alarm after so many failed occurrences in a row; never when left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) pause_after: Option<u32>,
}

const MISFIRE: [(&str, &str); 3] = [
    ("coalesce", "One wake for all of them: the newest"),
    ("catch_up", "One wake each for the newest of them"),
    ("skip", "None"),
];

const OVERLAP: [(&str, &str); 3] = [
    ("allow", "It fires all the same"),
    ("queue", "It waits"),
    ("skip", "It is skipped"),
];

impl PolicyArgs {
    /// The policy, and how many are caught up with.
    pub(super) fn misfire(&self) -> Result<(Option<Misfire>, Option<u32>)> {
        match (self.misfire, self.catch_up) {
            (None | Some(Misfire::CatchUp), Some(many)) => Ok((Some(Misfire::CatchUp), Some(many))),
            (misfire, None) => Ok((misfire, None)),
            (Some(_), Some(_)) => {
                let message = "--catch-up means nothing with this --misfire";
                let advice = "Give --misfire catch_up, or leave out --catch-up";
                Err(Refusal::usage(message, advice).into())
            }
        }
    }
}
