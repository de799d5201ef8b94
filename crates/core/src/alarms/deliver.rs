//! Deliver: a claim becomes a wake and comes back as a verdict. Outside any transaction; knows no SQL.
//!
//! What counts as a failed try (I5): whatever left this server and was not confirmed with 2xx: an answer that is none,
//! no answer, no connection, no name. What never left counts for nothing: a target that is full or does not answer, a
//! server that is shutting down, a lease that is over, a server without a router. A target that may not be called at
//! all fails the occurrence at once, without a try.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use url::Url;

use super::claim::Claim;
use super::ladder;
use super::settle::{Fate, Settlement, Verdict};
use super::target::Target;
use super::{AlarmsContext, Origin};
use crate::id::{AlarmId, WorkspaceId};
use crate::task::panic_message;
use crate::wake::answer::Class;
use crate::wake::targets::{Admission, Change, Recipient};
use crate::wake::{NamedBy, Outcome, Wake};

/// A server that knows no router leaves such wakes to those that do.
const NO_ROUTER: Duration = Duration::from_secs(30);
/// What is kept of an error.
const LONGEST_ERROR: usize = 500;

/// The body of a wake, exactly.
#[derive(Serialize)]
struct Body<'a> {
    /// Whose alarm it is, by our own record: everything else but the ids and times is what somebody said.
    workspace_id: WorkspaceId,
    user_id: &'a str,
    conversation_id: Option<&'a str>,
    message: Option<&'a str>,
    /// As it was given, character by character.
    payload: Option<&'a RawValue>,
    alarm_id: AlarmId,
    scheduled_for: Timestamp,
    attempt: u32,
    origin: Origin,
}

/// Delivers what a claim holds.
pub(crate) async fn deliver(context: &AlarmsContext, claim: Claim) -> Settlement {
    let verdict = decide(context, &claim).await;
    Settlement { claim, verdict }
}

async fn decide(context: &AlarmsContext, claim: &Claim) -> Verdict {
    let (url, named_by) = match destination(context, claim) {
        Ok(destination) => destination,
        Err(verdict) => return verdict,
    };
    let recipient = match named_by {
        NamedBy::Operator => Recipient::router(),
        NamedBy::Tenant => Recipient::target(&url),
    };
    let name = recipient.as_str();
    let pass = match context.targets.admit(name).await {
        Admission::Go(pass) => pass,
        Admission::Full { wait } => {
            return Verdict {
                wait,
                held_back: Some("full"),
                ..Verdict::of(Fate::Released)
            };
        }
        Admission::Open { wait } => {
            return Verdict {
                held_back: Some("unreachable"),
                ..Verdict::released(wait, format!("held back: {name} does not answer"))
            };
        }
    };
    let secrets = match context.keyring.secrets_of(&context.database, &recipient).await {
        Ok(secrets) => secrets,
        Err(error) => {
            let message = format!("its secret could not be read: {error}");
            return Verdict::released(Duration::from_secs(1), message);
        }
    };
    let id = claim.alarm_id.wake_id(claim.scheduled_for);
    let wake = Wake {
        url: &url,
        named_by,
        id: &id,
        body: body(claim),
        secrets: &secrets,
        traceparent: claim.content.traceparent.as_deref(),
    };
    // After everything that could take time: nothing stands between this look and the request.
    if !may_send(context, claim) {
        return Verdict::of(Fate::Abandoned);
    }
    if claim.attempts == 0 && claim.recoveries == 0 {
        let late = claim.late + claim.claimed.elapsed().as_secs_f64();
        context.metrics.alarms.late(late);
    }
    let asked_at = Instant::now();
    let sent = AssertUnwindSafe(context.client.send(&wake, context.settings.delivery_timeout));
    let outcome = sent
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Outcome::Unreachable {
            message: format!("the wake panicked: {}", panic_message(&*panic)),
        });
    let class = Class::of(&outcome);
    context.metrics.alarms.answered(class, asked_at.elapsed());
    let change = pass.over(class != Class::Unreachable);
    tell(context, name, change, &outcome);
    judge(claim, outcome, class)
}

/// The last look before the request leaves: is the claim still ours, by our own clock, for as long as the wake may take?
fn may_send(context: &AlarmsContext, claim: &Claim) -> bool {
    Instant::now() + context.settings.delivery_timeout <= claim.valid_until
        && context.presence.is(claim.holder)
}

/// Where the wake goes. A server that knows no router leaves it to those that do.
fn destination(context: &AlarmsContext, claim: &Claim) -> Result<(Url, NamedBy), Verdict> {
    match Target::on_record(claim.content.target_url.as_deref()) {
        Ok(Target::Url(url)) => Ok((url, NamedBy::Tenant)),
        Ok(Target::Router) => context.router.clone().map(|url| (url, NamedBy::Operator)).ok_or_else(|| {
            tracing::error!(alarm = %claim.alarm_id, "Alarm names no target, and alarms.router_url is not set");
            let message = "it names no target, and this server's alarms.router_url is not set";
            Verdict::released(NO_ROUTER, message.to_owned())
        }),
        Err(what) => Err(Verdict {
            class: Some(Class::Forbidden),
            message: Some(format!("its target {what}")),
            ..Verdict::of(Fate::Failed)
        }),
    }
}

fn body(claim: &Claim) -> Vec<u8> {
    let content = &claim.content;
    let owner = content.workspace_id.to_string();
    let payload = content.payload.as_deref();
    let body = Body {
        workspace_id: content.workspace_id,
        user_id: content.user_id.as_deref().unwrap_or(&owner),
        conversation_id: content.conversation_id.as_deref(),
        message: content.message.as_deref(),
        payload: payload.and_then(|text| serde_json::from_str(text).ok()),
        alarm_id: claim.alarm_id,
        scheduled_for: claim.scheduled_for,
        attempt: claim.attempts + 1,
        origin: claim.origin,
    };
    // Strings, numbers and JSON that was parsed before: there is nothing in it that could not be written.
    serde_json::to_vec(&body).unwrap_or_default()
}

fn tell(context: &AlarmsContext, target: &str, change: Change, outcome: &Outcome) {
    match change {
        Change::None => return,
        Change::Opened => {
            let error = match outcome {
                Outcome::Unreachable { message } => message,
                _ => "",
            };
            tracing::error!(
                target_origin = target,
                error,
                "A wake target does not answer; its wakes are held back"
            );
        }
        Change::Closed => tracing::info!(target_origin = target, "A wake target answers again"),
    }
    context.metrics.alarms.open_targets(context.targets.open());
    // Recovery writes down which targets are silent, for people to see.
    context.bells.alarm_recovery.ring();
}

fn judge(claim: &Claim, outcome: Outcome, class: Class) -> Verdict {
    let (message, reply, asked_for) = match outcome {
        Outcome::Answered { status, body, .. } if class == Class::Accepted => {
            return Verdict {
                class: Some(class),
                reply: Some((status, body)),
                ..Verdict::of(Fate::Fired)
            };
        }
        Outcome::Answered {
            status,
            body,
            retry_after,
        } => (
            format!("the target answered {status}"),
            Some((status, body)),
            retry_after,
        ),
        Outcome::Unreachable { message } => (format!("no answer: {message}"), None, None),
        Outcome::Forbidden { message } => (message, None, None),
    };
    let attempt = claim.attempts + 1;
    let (fate, wait) = if class.is_permanent() || attempt >= claim.max_failures {
        (Fate::Failed, Duration::ZERO)
    } else {
        (Fate::Retry, ladder::wait(attempt, asked_for))
    };
    Verdict {
        wait,
        class: Some(class),
        message: Some(message.replace('\0', "").chars().take(LONGEST_ERROR).collect()),
        reply,
        ..Verdict::of(fate)
    }
}
