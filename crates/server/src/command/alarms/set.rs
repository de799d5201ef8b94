//! Set an alarm.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use stationmaster_core::alarms::inspect::{self, Alarm};
use stationmaster_core::alarms::operate;
use stationmaster_core::alarms::set::{Answer, SetAlarm, set};
use stationmaster_core::id::WorkspaceId;

use super::next::{Shown, fires};
use super::request::{PolicyArgs, WakeArgs, WhenArgs};
use crate::command::Context;
use crate::command::arguments::id;
use crate::failure::Refusal;

/// Coming fires that are shown.
const SHOWN: usize = 10;

/// For whom, when, what.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Whose it is
    #[arg(long, value_name = "ID", value_parser = id::<WorkspaceId>)]
    workspace: WorkspaceId,
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
    fn request(self) -> Result<SetAlarm> {
        let payload = self.wake.payload()?;
        let misfire = self.policies.misfire()?.unwrap_or_default();
        let Some(when) = self.when.when(self.wake.zone) else {
            let message = "nobody says when it fires";
            return Err(Refusal::usage(message, "Give one of --at, --in, --civil and --cron").into());
        };
        let overlap = self.policies.overlap().unwrap_or_default();
        Ok(SetAlarm {
            label: self.wake.label.unwrap_or_default(),
            target_url: self.wake.target,
            user_id: self.wake.user,
            conversation_id: self.wake.conversation,
            message: self.wake.message,
            payload,
            idempotency_key: self.key,
            max_failures: self.policies.max_failures,
            misfire,
            misfire_window: self.policies.misfire_window,
            overlap,
            dst: self.policies.dst.map(Into::into).unwrap_or_default(),
            jitter: self.policies.jitter.unwrap_or_default(),
            start_at: self.policies.start,
            end_at: self.policies.end,
            pause_after: self.policies.pause_after,
            ..SetAlarm::new(self.workspace, when)
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
    pub(super) fn new(alarm: Alarm, created: bool) -> Self {
        let fires = alarm.upcoming(jiff::Timestamp::now(), SHOWN);
        Self {
            fires: fires.into_iter().map(Shown::from).collect(),
            alarm,
            created,
        }
    }

    pub(super) fn words(&self, what: &str) -> String {
        let alarm = &self.alarm;
        let next = alarm
            .next_fire_at
            .map_or_else(String::new, |at| format!(", next at {at}"));
        let head = format!("{what} {} ({}){next}.", alarm.id, alarm.status);
        let described = alarm
            .description
            .as_ref()
            .map_or(head.clone(), |words| format!("{head}\n{words}"));
        if self.fires.is_empty() {
            described
        } else {
            format!("{described}\n\n{}", fires(&self.fires))
        }
    }
}

pub(super) async fn run(args: SetArgs, context: &Context) -> Result<()> {
    // What is wrong with the arguments is told before the database is needed.
    let request = args.request()?;
    let database = context.database().await?;
    let answer = set(&database, &request, &Context::actor()).await?;
    let created = matches!(answer, Answer::New(_));
    let Some(alarm) = inspect::alarm(&database, answer.alarm()).await? else {
        return Err(operate::Error::NotFound(answer.alarm()).into());
    };
    context.format.print(&Done::new(alarm, created), |done| {
        let what = if created {
            "Set alarm"
        } else {
            "The same request was made before: alarm"
        };
        done.words(what)
    })
}
