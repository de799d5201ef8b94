//! Change an alarm.

use anyhow::Result;
use clap::{Args, ValueEnum};
use stationmaster_core::alarms::edit::{Edit, edit};
use stationmaster_core::id::AlarmId;

use super::request::{PolicyArgs, WakeArgs, WhenArgs};
use super::set::Done;
use crate::command::Context;
use crate::command::arguments::id;
use crate::failure::Refusal;

/// What to change.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The alarm
    #[arg(value_parser = id::<AlarmId>)]
    id: AlarmId,
    #[command(flatten)]
    when: WhenArgs,
    #[command(flatten)]
    wake: WakeArgs,
    #[command(flatten)]
    policies: PolicyArgs,
    /// Take these away, with commas between them
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    clear: Vec<Clear>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
enum Clear {
    /// The wake goes to the router
    Target,
    Message,
    Payload,
    User,
    Conversation,
    /// The server's setting holds
    MaxFailures,
    /// The server's setting holds
    MisfireWindow,
    Jitter,
    Start,
    End,
    PauseAfter,
}

impl EditArgs {
    fn edit(self) -> Result<Edit> {
        let payload = self.wake.payload()?;
        let misfire = self.policies.misfire()?;
        let overlap = self.policies.overlap();
        let zone_alone = self.wake.zone.is_some();
        let when = self.when.when(self.wake.zone);
        if zone_alone && when.is_none() {
            let message = "a time zone means nothing by itself";
            return Err(Refusal::usage(message, "Give --cron or --civil with it").into());
        }
        let mut edit = Edit {
            label: self.wake.label,
            when,
            target_url: self.wake.target.map(Some),
            user_id: self.wake.user.map(Some),
            conversation_id: self.wake.conversation.map(Some),
            message: self.wake.message.map(Some),
            payload: payload.map(Some),
            max_failures: self.policies.max_failures.map(Some),
            misfire,
            misfire_window: self.policies.misfire_window.map(Some),
            overlap,
            dst: self.policies.dst.map(Into::into),
            jitter: self.policies.jitter,
            start_at: self.policies.start.map(Some),
            end_at: self.policies.end.map(Some),
            pause_after: self.policies.pause_after.map(Some),
        };
        for clear in self.clear {
            match clear {
                Clear::Target => edit.target_url = Some(None),
                Clear::Message => edit.message = Some(None),
                Clear::Payload => edit.payload = Some(None),
                Clear::User => edit.user_id = Some(None),
                Clear::Conversation => edit.conversation_id = Some(None),
                Clear::MaxFailures => edit.max_failures = Some(None),
                Clear::MisfireWindow => edit.misfire_window = Some(None),
                Clear::Jitter => edit.jitter = Some(std::time::Duration::ZERO),
                Clear::Start => edit.start_at = Some(None),
                Clear::End => edit.end_at = Some(None),
                Clear::PauseAfter => edit.pause_after = Some(None),
            }
        }
        Ok(edit)
    }
}

pub(super) async fn run(args: EditArgs, context: &Context) -> Result<()> {
    let id = args.id;
    let wanted = args.edit()?;
    let database = context.database().await?;
    let alarm = edit(&database, id, &wanted, &Context::actor()).await?;
    context
        .format
        .print(&Done::new(alarm, false), |done| done.words("Changed alarm"))
}
