//! Start: a claim goes to the engine, outside any transaction, and comes back as a verdict.
//!
//! Four ways a start can go wrong, each its own path: *gone* (fails at once), *refused* (spends an attempt),
//! *unavailable* (spends nothing; the breaker holds further claims back), *in doubt* (keeps execution and slot, asks
//! the engine, decides then). Knows no SQL.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::FutureExt as _;

use super::claim::{Claim, Work};
use super::settle::{Settlement, Verdict};
use super::{EndReason, ExecutionsContext};
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
pub(crate) async fn start(context: &ExecutionsContext, claim: Claim) -> Settlement {
    let verdict = match &claim.work {
        Work::Gone(reason) => {
            let (workspace, item) = (claim.workspace_id, claim.item_id);
            match reason {
                EndReason::WorkspaceGone => tracing::warn!(%workspace, %item, "Workspace not found"),
                EndReason::DefinitionGone => {
                    tracing::warn!(%workspace, %item, "Workflow definition not found");
                }
                _ => tracing::warn!(%workspace, %item, "Version of the workflow definition not found"),
            }
            Verdict::Failed {
                reason: *reason,
                message: gone_message(*reason).to_owned(),
                attempts: 0,
            }
        }
        Work::Ready(request) => start_run(context, &claim, request).await,
    };
    Settlement { claim, verdict }
}

fn gone_message(reason: EndReason) -> &'static str {
    match reason {
        EndReason::WorkspaceGone => "the workspace was deleted",
        EndReason::DefinitionGone => "the workflow definition was deleted",
        _ => "the version of the workflow definition was deleted",
    }
}

async fn start_run(context: &ExecutionsContext, claim: &Claim, request: &StartRequest) -> Verdict {
    if !may_send(context, claim) {
        // Nothing was sent. Whoever looks after it by now has another token; otherwise it need not wait until its lease ends.
        let message = "this server's lease ran out before the start was sent".to_owned();
        return Verdict::Released { message };
    }
    if let Some(reason) = context.contact.breaker.reason() {
        return Verdict::Released { message: reason };
    }
    let asked_at = Instant::now();
    let outcome = try_start(context, request).await;
    context.metrics.started(name_of(&outcome), asked_at.elapsed());
    match outcome {
        StartOutcome::InDoubt { message } => resolve_doubt(context, claim, request, message).await,
        outcome => judge(context, claim, outcome),
    }
}

/// As the metrics call it.
fn name_of(outcome: &StartOutcome) -> &'static str {
    match outcome {
        StartOutcome::Running { .. } => "running",
        StartOutcome::Closed(_) => "closed",
        StartOutcome::Refused { .. } => "refused",
        StartOutcome::Unavailable { .. } => "unavailable",
        StartOutcome::InDoubt { .. } => "in_doubt",
    }
}

/// The last look before the request leaves: is the claim still ours, by our own clock?
fn may_send(context: &ExecutionsContext, claim: &Claim) -> bool {
    Instant::now() < claim.valid_until && context.presence.is(claim.holder)
}

#[tracing::instrument(name = "step:dispatch_temporal", level = "debug", skip_all)]
async fn try_start(context: &ExecutionsContext, request: &StartRequest) -> StartOutcome {
    let attempt = AssertUnwindSafe(context.engine.start(request, context.settings.start_timeout));
    attempt
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| StartOutcome::Refused {
            message: format!("the start panicked: {}", panic_message(&*panic)),
        })
}

fn judge(context: &ExecutionsContext, claim: &Claim, outcome: StartOutcome) -> Verdict {
    match outcome {
        StartOutcome::Running { run_id } => {
            context.contact.answered();
            Verdict::Running { run_id }
        }
        StartOutcome::Closed(close) => {
            context.contact.answered();
            Verdict::Ended(close)
        }
        StartOutcome::Refused { message } => {
            context.contact.answered();
            refused(context, claim, message)
        }
        StartOutcome::Unavailable { message } | StartOutcome::InDoubt { message } => {
            context.contact.away(&message);
            Verdict::Released { message }
        }
    }
}

fn refused(context: &ExecutionsContext, claim: &Claim, message: String) -> Verdict {
    let attempt = claim.attempts + 1;
    tracing::error!(
        item = %claim.item_id, execution = %claim.execution_id, attempt, error = %message,
        "Failed to start Temporal workflow"
    );
    if attempt >= claim.max_attempts {
        tracing::error!(item = %claim.item_id, workspace = %claim.workspace_id, error = %message, attempt, "Error processing queue item");
        Verdict::Failed {
            reason: EndReason::Refused,
            message,
            attempts: 1,
        }
    } else {
        Verdict::Retry {
            wait: context.settings.retry.wait(attempt),
            message,
        }
    }
}

/// Nobody knows whether the run was started. Same id, ask, then decide; never a second id.
async fn resolve_doubt(
    context: &ExecutionsContext,
    claim: &Claim,
    request: &StartRequest,
    message: String,
) -> Verdict {
    tracing::warn!(execution = %claim.execution_id, error = %message, "A start is in doubt; asking the engine");
    context.contact.away(&message);
    let since = Instant::now();
    let mut failures = 0;
    loop {
        failures += 1;
        tokio::select! {
            () = tokio::time::sleep(ASK_AGAIN.wait(failures)) => {}
            () = context.stop.cancelled() => return Verdict::Abandoned,
        }
        if since.elapsed() > DOUBT_LIMIT || !context.presence.is(claim.holder) {
            return Verdict::Abandoned;
        }
        match describe(context, claim.execution_id).await {
            Some(RunState::Running { run_id }) => return Verdict::Running { run_id },
            Some(RunState::Closed(close)) => return Verdict::Ended(close),
            // It may still be on its way; a repeat under the same id finds it or makes it.
            Some(RunState::NotFound) => match try_start(context, request).await {
                StartOutcome::InDoubt { message } => {
                    context.contact.away(&message);
                }
                outcome => return judge(context, claim, outcome),
            },
            None => {}
        }
    }
}

async fn describe(context: &ExecutionsContext, execution: ExecutionId) -> Option<RunState> {
    let states = context.engine.describe(&[execution]).await;
    context.contact.heard(&states);
    states.ok()?.into_iter().next()
}
