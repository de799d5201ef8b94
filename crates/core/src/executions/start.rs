//! Start: a claim goes to the engine, outside any transaction, and comes back as a verdict.
//!
//! Four ways a start can go wrong, each its own path: *gone* (fails at once), *refused* (spends an attempt),
//! *unavailable* (spends nothing; the breaker holds further claims back), *in doubt* (keeps execution and slot, asks
//! the engine, decides then). Knows no SQL.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::FutureExt as _;

use super::ExecutionsContext;
use super::claim::{Claim, Work};
use super::settle::{Settlement, Verdict};
use crate::engine::{RunState, StartOutcome, StartRequest};
use crate::id::ExecutionId;
use crate::retry::Backoff;
use crate::task::panic_message;

const ASK_AGAIN: Backoff = Backoff {
    base: Duration::from_millis(200),
    cap: Duration::from_secs(5),
};
/// In doubt for this long, the claim is left to recovery, which asks as well.
const DOUBT_LIMIT: Duration = Duration::from_mins(1);

/// Starts what a claim holds.
pub(crate) async fn start(shared: &ExecutionsContext, claim: Claim) -> Settlement {
    let verdict = match &claim.work {
        Work::Gone(reason) => {
            if *reason == "workspace_gone" {
                tracing::warn!(workspace = %claim.workspace_id, item = %claim.item_id, "Workspace not found");
            }
            Verdict::Failed {
                reason,
                message: gone_message(reason).to_owned(),
                attempts: 0,
            }
        }
        Work::Ready(request) => start_run(shared, &claim, request).await,
    };
    Settlement { claim, verdict }
}

fn gone_message(reason: &str) -> &'static str {
    match reason {
        "workspace_gone" => "the workspace was deleted",
        "definition_gone" => "the workflow definition was deleted",
        _ => "the version of the workflow definition was deleted",
    }
}

async fn start_run(shared: &ExecutionsContext, claim: &Claim, request: &StartRequest) -> Verdict {
    if !may_send(shared, claim) {
        // Somebody else looks after it by now, or soon will.
        return Verdict::Abandoned;
    }
    if let Some(reason) = shared.contact.breaker.reason() {
        return Verdict::Released { message: reason };
    }
    let asked_at = Instant::now();
    let outcome = try_start(shared, request).await;
    shared.metrics.started(asked_at.elapsed());
    match outcome {
        StartOutcome::InDoubt { message } => resolve_doubt(shared, claim, request, message).await,
        outcome => judge(shared, claim, outcome),
    }
}

/// The last look before the request leaves: is the claim still ours, by our own clock?
fn may_send(shared: &ExecutionsContext, claim: &Claim) -> bool {
    Instant::now() < claim.valid_until && shared.presence.is(claim.holder)
}

#[tracing::instrument(name = "step:dispatch_temporal", level = "debug", skip_all)]
async fn try_start(shared: &ExecutionsContext, request: &StartRequest) -> StartOutcome {
    let attempt = AssertUnwindSafe(shared.engine.start(request, shared.settings.start_timeout));
    attempt
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| StartOutcome::Refused {
            message: format!("the start panicked: {}", panic_message(&*panic)),
        })
}

fn judge(shared: &ExecutionsContext, claim: &Claim, outcome: StartOutcome) -> Verdict {
    match outcome {
        StartOutcome::Running { run_id } => {
            shared.contact.answered();
            Verdict::Running { run_id }
        }
        StartOutcome::Closed(close) => {
            shared.contact.answered();
            Verdict::Ended(close)
        }
        StartOutcome::Refused { message } => {
            shared.contact.answered();
            refused(shared, claim, message)
        }
        StartOutcome::Unavailable { message } | StartOutcome::InDoubt { message } => {
            shared.contact.away(&message);
            Verdict::Released { message }
        }
    }
}

fn refused(shared: &ExecutionsContext, claim: &Claim, message: String) -> Verdict {
    let attempt = claim.attempts + 1;
    tracing::error!(
        item = %claim.item_id, execution = %claim.execution_id, attempt, error = %message,
        "Failed to start Temporal workflow"
    );
    if attempt >= claim.max_attempts {
        tracing::error!(item = %claim.item_id, error = %message, attempt, "Error processing queue item");
        Verdict::Failed {
            reason: "refused",
            message,
            attempts: 1,
        }
    } else {
        Verdict::Retry {
            wait: shared.settings.retry.wait(attempt),
            message,
        }
    }
}

/// Nobody knows whether the run was started. Same id, ask, then decide; never a second id.
async fn resolve_doubt(
    shared: &ExecutionsContext,
    claim: &Claim,
    request: &StartRequest,
    message: String,
) -> Verdict {
    tracing::warn!(execution = %claim.execution_id, error = %message, "A start is in doubt; asking the engine");
    shared.contact.away(&message);
    let since = Instant::now();
    let mut failures = 0;
    loop {
        failures += 1;
        tokio::select! {
            () = tokio::time::sleep(ASK_AGAIN.wait(failures)) => {}
            () = shared.stop.cancelled() => return Verdict::Abandoned,
        }
        if since.elapsed() > DOUBT_LIMIT || !shared.presence.is(claim.holder) {
            return Verdict::Abandoned;
        }
        match describe(shared, claim.execution_id).await {
            Some(RunState::Running { run_id }) => return Verdict::Running { run_id },
            Some(RunState::Closed(close)) => return Verdict::Ended(close),
            // It may still be on its way; a repeat under the same id finds it or makes it.
            Some(RunState::NotFound) => match try_start(shared, request).await {
                StartOutcome::InDoubt { message } => {
                    shared.contact.away(&message);
                }
                outcome => return judge(shared, claim, outcome),
            },
            None => {}
        }
    }
}

async fn describe(shared: &ExecutionsContext, execution: ExecutionId) -> Option<RunState> {
    let states = shared.engine.describe(&[execution]).await;
    shared.contact.heard(&states);
    states.ok()?.into_iter().next()
}
