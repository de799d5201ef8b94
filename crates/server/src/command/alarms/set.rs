//! Set an alarm.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use stationmaster_client::wire::{Alarm, AlarmKind, NewAlarm, Reference, Upcoming};

use super::next::Shown;
use super::request::{PolicyArgs, WakeArgs, WhenArgs};
use crate::command::Context;
use crate::command::names::{self, reference};
use crate::failure::Refusal;
use crate::output::{rows, word};

/// For whom, when, what.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Whose it is
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workspace: Reference,
    #[command(flatten)]
    when: WhenArgs,
    #[command(flatten)]
    wake: WakeArgs,
    #[command(flatten)]
    policies: PolicyArgs,
    /// A repeat with the same key and the same request gives the first alarm
    #[arg(long)]
    key: Option<String>,
}

impl SetArgs {
    fn request(self) -> Result<NewAlarm<Reference>> {
        let payload = self.wake.payload()?;
        let (misfire, catch_up) = self.policies.misfire()?;
        let when = self.when.when(self.wake.zone)?;
        if when.is_silent() {
            let message = "nobody says when it fires";
            return Err(Refusal::usage(message, "Give one of --at, --in, --civil and --cron").into());
        }
        Ok(NewAlarm {
            workspace_id: self.workspace,
            fire_at: when.fire_at,
            delay: when.delay,
            civil_at: when.civil_at,
            cron_expr: when.cron_expr,
            timezone: when.timezone,
            label: self.wake.label.unwrap_or_default(),
            name: self.wake.name,
            target_url: self.wake.target,
            user_id: self.wake.user,
            conversation_id: self.wake.conversation,
            message: self.wake.message,
            payload,
            idempotency_key: self.key,
            max_failures: self.policies.max_failures,
            misfire,
            catch_up,
            misfire_window: self.policies.misfire_window.map(|window| window.as_secs_f64()),
            overlap: self.policies.overlap,
            dst: self.policies.dst,
            jitter: self.policies.jitter.map(|jitter| jitter.as_secs_f64()),
            start_at: self.policies.start,
            end_at: self.policies.end,
            pause_after: self.policies.pause_after,
            traceparent: None,
        })
    }
}

/// The answer to a set or an edit.
#[derive(Serialize)]
pub(super) struct Done {
    #[serde(flatten)]
    pub(super) alarm: Alarm,
    /// False: the same request was made before, and this is its alarm.
    pub(super) created: bool,
    /// The coming fires.
    pub(super) fires: Vec<Shown>,
}

impl Done {
    pub(super) fn new(alarm: Alarm, upcoming: Vec<Upcoming>, created: bool) -> Self {
        Self {
            fires: upcoming.into_iter().map(Shown::from).collect(),
            alarm,
            created,
        }
    }

    pub(super) fn words(&self, what: &str) -> String {
        let alarm = &self.alarm;
        let next = alarm
            .next_fire_at
            .map_or_else(String::new, |at| format!(", next at {at}"));
        let head = format!("{what} {} ({}){next}.", alarm.id, word(&alarm.status));
        let described = alarm
            .description
            .as_ref()
            .map_or(head.clone(), |words| format!("{head}\n{words}"));
        if self.fires.is_empty() {
            described
        } else {
            format!("{described}\n\n{}", rows(&self.fires))
        }
    }
}

pub(super) async fn run(args: SetArgs, context: &Context) -> Result<()> {
    // What is wrong with the arguments is told before anybody else is needed.
    let request = args.request()?;
    let client = context.client().await?;
    let workspace = names::workspace(&client, &request.workspace_id).await?;
    let made = client.set_alarm(&request.with_ids(workspace)).await?;
    let done = Done::new(made.alarm, made.upcoming, !made.duplicate);
    let past = done.alarm.kind == AlarmKind::Once
        && done.created
        && done
            .alarm
            .next_fire_at
            .is_some_and(|at| at < jiff::Timestamp::now());
    context.print(&done, |done| {
        let what = if done.created {
            "Set alarm"
        } else {
            "The same request was made before: alarm"
        };
        done.words(what)
    })?;
    if past {
        context.hint("That lies in the past: it fires at once, unless its --misfire is skip.");
    }
    Ok(())
}
