//! Change an alarm.

use anyhow::Result;
use clap::{Args, ValueEnum};
use stationmaster_client::wire::{AlarmChange, Noun, Reference};

use super::request::{PolicyArgs, WakeArgs, WhenArgs};
use super::set::Done;
use crate::command::Context;
use crate::command::names::{self, reference};

/// What to change.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The alarm
    #[arg(value_parser = reference)]
    id: Reference,
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
    fn change(self) -> Result<AlarmChange> {
        let payload = self.wake.payload()?;
        let (misfire, catch_up) = self.policies.misfire()?;
        let when = self.when.when(self.wake.zone)?;
        let seconds = |time: std::time::Duration| time.as_secs_f64();
        let mut edit = AlarmChange {
            label: self.wake.label,
            fire_at: when.fire_at,
            delay: when.delay,
            civil_at: when.civil_at,
            cron_expr: when.cron_expr,
            timezone: when.timezone,
            target_url: self.wake.target.map(Some),
            name: self.wake.name.map(Some),
            user_id: self.wake.user.map(Some),
            conversation_id: self.wake.conversation.map(Some),
            message: self.wake.message.map(Some),
            payload: payload.map(Some),
            max_failures: self.policies.max_failures.map(Some),
            misfire,
            catch_up,
            misfire_window: self.policies.misfire_window.map(seconds).map(Some),
            overlap: self.policies.overlap,
            dst: self.policies.dst,
            jitter: self.policies.jitter.map(seconds),
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
                Clear::Jitter => edit.jitter = Some(0.0),
                Clear::Start => edit.start_at = Some(None),
                Clear::End => edit.end_at = Some(None),
                Clear::PauseAfter => edit.pause_after = Some(None),
            }
        }
        Ok(edit)
    }
}

pub(super) async fn run(args: EditArgs, context: &Context) -> Result<()> {
    let which = args.id.clone();
    // What is wrong with the arguments is told before anybody else is needed.
    let change = args.change()?;
    let client = context.client().await?;
    let id = names::one(&client, Noun::Alarm, None, &which).await?;
    let changed = client.change_alarm(id, &change, None).await?;
    context.print(&Done::new(changed.alarm, changed.upcoming, false), |done| {
        done.words("Changed alarm")
    })
}
