//! The dispatcher as a workflow. Deterministic: everything that touches the world is an activity, and what it remembers is the
//! pure [`State`] of the core.
//!
//! It waits for news from the inbox, routes by an activity, checks itself by a timer, evicts silent servers in batches, answers a
//! status query, and continues as new with all that it remembers. When an activity says that another epoch owns the dispatcher,
//! it completes: it has nothing to do any more.

#![allow(
    missing_docs,
    unreachable_pub,
    reason = "Temporal's macros want public items, and add some without a word"
)]

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use stationmaster_core::engine::dispatchers::state::{Announcement, Registration, State, Status};
use stationmaster_core::engine::dispatchers::{
    Checked, Desk, DeskError, Evicted, Routed, RunRequest, Tenure,
};
use stationmaster_core::id::ServerId;
use temporalio_common::RetryPolicy;
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::{
    ActivityExecutionError, ActivityOptions, ContinueAsNewOptions, SyncWorkflowContext, WorkflowContext,
    WorkflowContextView, WorkflowResult, WorkflowTermination,
};
use tokio::runtime::Handle;

pub(super) const WORKFLOW_TYPE: &str = "stationmaster-dispatcher";
pub(super) const ANNOUNCE: &str = "announce";
pub(super) const REGISTER: &str = "register";
pub(super) const LEAVE: &str = "leave";
pub(super) const STATUS: &str = "status";

/// Longer than the desk takes for an ordinary act. An act whose report is lost, because Temporal went away or the desk was slow, is
/// repeated after this time; that is harmless, as every act is fenced and none routes a signal twice.
const ACTIVITY_TIMEOUT: Duration = Duration::from_secs(8);

/// What a run is started with, and what it continues with.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    #[serde(flatten)]
    tenure: Tenure,
    check_interval_ms: u64,
    evict_batch: usize,
    continue_after: u32,
    #[serde(default)]
    state: Option<State>,
    /// When it next checks itself, in milliseconds since 1970: a run that continues keeps the time.
    #[serde(default)]
    check_at_ms: Option<u64>,
}

impl Input {
    pub(super) fn of(request: &RunRequest) -> Self {
        Self {
            tenure: request.tenure.clone(),
            check_interval_ms: u64::try_from(request.check_interval.as_millis()).unwrap_or(u64::MAX),
            evict_batch: request.evict_batch,
            continue_after: request.continue_after,
            state: None,
            check_at_ms: None,
        }
    }
}

/// What an eviction is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Eviction {
    tenure: Tenure,
    servers: Vec<ServerId>,
}

#[workflow]
pub struct DispatcherWorkflow {
    input: Input,
    state: State,
}

/// What follows on a step.
enum Turn {
    Go,
    /// Another epoch owns the dispatcher.
    Superseded,
}

#[workflow_methods]
impl DispatcherWorkflow {
    #[init]
    pub fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self {
            state: input.state.clone().unwrap_or_else(State::begin),
            input,
        }
    }

    #[run(name = WORKFLOW_TYPE)]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Status> {
        let input = ctx.state(|this| this.input.clone());
        let interval = Duration::from_millis(input.check_interval_ms.max(1));
        let mut check_at = input.check_at_ms.unwrap_or_else(|| now_ms(ctx) + in_ms(interval));
        let mut timer = ctx.timer(until(ctx, check_at).min(interval));
        loop {
            if let Turn::Superseded = route(ctx, &input).await? {
                return Ok(ctx.state(Self::describe));
            }
            if ctx.history_length() > input.continue_after || ctx.continue_as_new_suggested() {
                let next = Input {
                    state: Some(ctx.state(|this| this.state.clone().continued())),
                    check_at_ms: Some(check_at),
                    ..input.clone()
                };
                ctx.continue_as_new(next, ContinueAsNewOptions::default())?;
            }
            temporalio_sdk::workflows::select! {
                _ = timer => {
                    if let Turn::Superseded = check(ctx, &input).await? {
                        return Ok(ctx.state(Self::describe));
                    }
                    check_at = now_ms(ctx) + in_ms(interval);
                    timer = ctx.timer(interval);
                }
                waited = ctx.wait_condition(|this: &Self| this.state.wants_to_route()) => {
                    waited.map_err(|_| WorkflowTermination::cancelled())?;
                }
            }
        }
    }

    #[signal(name = ANNOUNCE)]
    pub fn announce(&mut self, _ctx: &mut SyncWorkflowContext<Self>, news: Announcement) {
        self.state.announce(news);
    }

    #[signal(name = REGISTER)]
    pub fn register(&mut self, _ctx: &mut SyncWorkflowContext<Self>, server: Registration) {
        self.state.register(server);
    }

    #[signal(name = LEAVE)]
    pub fn leave(&mut self, _ctx: &mut SyncWorkflowContext<Self>, server: ServerId) {
        self.state.leave(server);
    }

    #[query(name = STATUS)]
    pub fn status(&self, _ctx: &WorkflowContextView) -> Status {
        self.describe()
    }
}

impl DispatcherWorkflow {
    fn describe(&self) -> Status {
        self.state.status(&self.input.tenure)
    }
}

/// The time that every replay sees.
fn now_ms(ctx: &WorkflowContext<DispatcherWorkflow>) -> u64 {
    let since = ctx
        .workflow_time()
        .and_then(|now| now.duration_since(UNIX_EPOCH).ok());
    in_ms(since.unwrap_or_default())
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How long until then; a moment, when it is past.
fn until(ctx: &WorkflowContext<DispatcherWorkflow>, at_ms: u64) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(now_ms(ctx)).max(1))
}

fn options() -> ActivityOptions {
    let retry = RetryPolicy::builder()
        .initial_interval(Duration::from_millis(200))
        .maximum_interval(Duration::from_secs(5))
        .build();
    ActivityOptions::with_start_to_close_timeout(ACTIVITY_TIMEOUT)
        .retry_policy(retry)
        .build()
}

/// An activity is retried for ever, so all that is left is that the run was cancelled.
fn ended(error: ActivityExecutionError) -> WorkflowTermination {
    match error {
        ActivityExecutionError::Cancelled(_) => WorkflowTermination::cancelled(),
        error => error.into(),
    }
}

async fn route(
    ctx: &WorkflowContext<DispatcherWorkflow>,
    input: &Input,
) -> Result<Turn, WorkflowTermination> {
    if !ctx.state(|this| this.state.wants_to_route()) {
        return Ok(Turn::Go);
    }
    ctx.state_mut(|this| this.state.begin_to_route());
    let routed = ctx
        .execute_activity(Deskwork::route, input.tenure.clone(), options())
        .await
        .map_err(ended)?;
    ctx.state_mut(|this| this.state.has_routed(routed.routed, routed.dead, routed.more));
    Ok(if routed.superseded {
        Turn::Superseded
    } else {
        Turn::Go
    })
}

async fn check(
    ctx: &WorkflowContext<DispatcherWorkflow>,
    input: &Input,
) -> Result<Turn, WorkflowTermination> {
    let seen = ctx
        .execute_activity(Deskwork::check, input.tenure.clone(), options())
        .await
        .map_err(ended)?;
    if seen.superseded {
        return Ok(Turn::Superseded);
    }
    let servers = ctx.state_mut(|this| {
        this.state.check(
            input.tenure.owner,
            seen.registered,
            &seen.silent,
            input.evict_batch,
        )
    });
    if servers.is_empty() {
        return Ok(Turn::Go);
    }
    let eviction = Eviction {
        tenure: input.tenure.clone(),
        servers,
    };
    let evicted = ctx
        .execute_activity(Deskwork::evict, eviction, options())
        .await
        .map_err(ended)?;
    ctx.state_mut(|this| this.state.evict(&evicted.servers));
    Ok(if evicted.superseded {
        Turn::Superseded
    } else {
        Turn::Go
    })
}

/// The activities: the desk, reached from the worker's thread. The desk's connections belong to the server's own runtime, so its
/// work is done there.
pub struct Deskwork {
    pub(super) desk: Arc<dyn Desk>,
    pub(super) server: Handle,
}

impl Deskwork {
    async fn at_the_desk<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, DeskError>> + Send + 'static,
    ) -> Result<T, ActivityError> {
        Ok(self.server.spawn(work).await??)
    }
}

#[activities]
impl Deskwork {
    #[activity(name = "route")]
    pub async fn route(
        self: Arc<Self>,
        _ctx: ActivityContext,
        tenure: Tenure,
    ) -> Result<Routed, ActivityError> {
        let desk = Arc::clone(&self.desk);
        self.at_the_desk(async move { desk.route(&tenure).await }).await
    }

    #[activity(name = "check")]
    pub async fn check(
        self: Arc<Self>,
        _ctx: ActivityContext,
        tenure: Tenure,
    ) -> Result<Checked, ActivityError> {
        let desk = Arc::clone(&self.desk);
        self.at_the_desk(async move { desk.check(&tenure).await }).await
    }

    #[activity(name = "evict")]
    pub async fn evict(
        self: Arc<Self>,
        _ctx: ActivityContext,
        asked: Eviction,
    ) -> Result<Evicted, ActivityError> {
        let desk = Arc::clone(&self.desk);
        self.at_the_desk(async move { desk.evict(&asked.tenure, &asked.servers).await })
            .await
    }
}
