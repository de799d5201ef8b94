//! The owner's side of the engine: every tenure has its run, every run hears of what waits, and a run that was lost is made again.
//!
//! Fence before sending: a request to replace a run is sent only with time left on the lease, and waits no longer than that. Should
//! one still arrive late and end a newer owner's run, that owner finds it gone at its next look and starts it anew.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream;

use super::assembly::DispatchersContext;
use super::ownership::{Held, Kind};
use super::{DispatcherId, Tenure};
use crate::db::{self, Read as _, statement, within};
use crate::engine::dispatchers::state::{Announcement, Registration};
use crate::engine::dispatchers::{Run, RunRequest, RunState};
use crate::engine::{EngineUnavailable, Reach};
use crate::observe::trace;
use crate::retry::Backoff;
use crate::task::{Next, Pass};

/// How many runs are looked after at once.
const PARALLEL: usize = 8;
/// The longest that a start may take.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const AGAIN: Backoff = Backoff {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(5),
};

/// See the module.
pub(super) struct Runs {
    context: DispatchersContext,
    looked: Option<Instant>,
}

impl Pass for Runs {
    fn name(&self) -> &'static str {
        "runs of dispatchers"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let context = &self.context;
        let look = self
            .looked
            .is_none_or(|at| at.elapsed() >= context.settings.check_interval);
        let held = context.ownership.held();
        if look {
            self.looked = Some(Instant::now());
            let answered: Vec<bool> = stream::iter(held.into_iter().filter(|held| held.run.is_some()))
                .map(|held| find_lost(context, held))
                .buffer_unordered(PARALLEL)
                .collect()
                .await;
            if answered.contains(&false) {
                // An engine that does not answer is asked again soon, so that its breaker opens.
                self.looked = None;
            }
        }
        let results: Vec<Result<(), db::Error>> = stream::iter(context.ownership.held())
            .filter(|held| std::future::ready(held.run.is_none() && is_due(held)))
            .map(|held| start(context, held))
            .buffer_unordered(PARALLEL)
            .collect()
            .await;
        results.into_iter().collect::<Result<(), _>>()?;
        self.introduce().await;
        self.announce().await?;
        self.rest().await?;
        self.remove().await?;
        let again = context.ownership.held().iter().any(|held| held.run.is_none());
        let wait = context.settings.poll_interval;
        Ok(Next::After(if again { wait.min(AGAIN.base) } else { wait }))
    }
}

/// What came of laying a dispatcher to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// It rests, and nothing of it is left.
    Done,
    /// It rests, and its run or its heartbeat is left to the supervisor.
    LeftSomething,
    /// Something waits for it, or it is another's.
    Refused,
}

fn is_due(held: &Held) -> bool {
    held.not_before.is_none_or(|at| Instant::now() >= at)
}

fn run_of(held: &Held) -> Option<Run> {
    Some(Run {
        dispatcher_id: held.tenure.dispatcher_id.clone(),
        run_id: held.run.clone()?,
    })
}

/// A run that ended without us is started again, under the same epoch. Answers whether the engine did.
async fn find_lost(context: &DispatchersContext, held: Held) -> bool {
    let Some(run) = run_of(&held) else { return true };
    let state = context.engine.state(&run).await;
    context.contact.heard(&state);
    match state {
        Ok(RunState::Gone) => {
            tracing::warn!(dispatcher = %run.dispatcher_id, run = run.run_id, "The run of a dispatcher is gone; it is started again");
            context.ownership.note(&held.tenure, |held| {
                held.run = None;
                held.attempt += 1;
            });
            true
        }
        Ok(RunState::Running) => true,
        Err(error) => {
            tracing::debug!(dispatcher = %run.dispatcher_id, %error, "Could not ask for a run");
            false
        }
    }
}

async fn start(context: &DispatchersContext, held: Held) -> Result<(), db::Error> {
    let tenure = &held.tenure;
    let Some(left) = context.ownership.time_left(tenure) else {
        return Ok(());
    };
    let request = RunRequest {
        tenure: tenure.clone(),
        attempt: held.attempt,
        check_interval: context.settings.check_interval,
        evict_batch: context.settings.evict_batch,
        continue_after: context.settings.continue_after,
    };
    let answer = context.engine.replace(&request, left.min(START_TIMEOUT)).await;
    context.contact.heard(&answer);
    match answer {
        Ok(run_id) => started(context, &held, run_id).await,
        Err(error) => {
            failed(context, &held, &error);
            Ok(())
        }
    }
}

async fn started(context: &DispatchersContext, held: &Held, run_id: String) -> Result<(), db::Error> {
    let tenure = &held.tenure;
    let query = sqlx::query_scalar(statement!("dispatchers/run_started"))
        .bind(&tenure.dispatcher_id)
        .bind(tenure.epoch)
        .bind(tenure.owner)
        .bind(&run_id);
    let kept: Option<String> = query.maybe(&context.database).await?;
    if kept.is_none() {
        context.metrics.stale_write("run");
        context.ownership.forget(tenure);
        return Ok(());
    }
    if held.attempt == 0 {
        let latency = held.vacant_for + held.taken_at.elapsed();
        context
            .metrics
            .dispatchers
            .taken(held.kind.as_str(), "started", Some(latency));
        if held.kind != Kind::Fresh {
            tracing::info!(dispatcher = %tenure.dispatcher_id, epoch = tenure.epoch.0, run = run_id, seconds = latency.as_secs_f64(), "Dispatcher is back");
        }
    }
    context.ownership.note(tenure, |held| {
        held.run = Some(run_id);
        held.failures = 0;
        held.not_before = None;
        held.problem = None;
    });
    Ok(())
}

fn failed(context: &DispatchersContext, held: &Held, error: &EngineUnavailable) {
    context
        .metrics
        .dispatchers
        .taken(held.kind.as_str(), "failed", None);
    if held.failures == 0 {
        tracing::error!(dispatcher = %held.tenure.dispatcher_id, %error, "Could not start the run of a dispatcher; trying on");
    }
    context.ownership.note(&held.tenure, |held| {
        held.failures += 1;
        held.not_before = Some(Instant::now() + AGAIN.wait(held.failures));
        held.problem = Some(error.to_string());
    });
}

impl Runs {
    pub(super) fn new(context: DispatchersContext) -> Self {
        Self {
            context,
            looked: None,
        }
    }

    /// Tells the runs of dispatchers where this server stands by.
    async fn introduce(&self) {
        let context = &self.context;
        let newcomers: Vec<DispatcherId> = std::mem::take(&mut *context.newcomers.lock());
        // A local engine's run reads the registrations itself, and no other process could be told.
        if context.engine.reach() == Reach::Local {
            return;
        }
        let Some(server_id) = context.presence.holder() else {
            return;
        };
        stream::iter(newcomers)
            .for_each_concurrent(PARALLEL, |dispatcher| async move {
                let registration = Registration {
                    server_id,
                    task_queue: context.engine.task_queue(),
                };
                if let Err(error) = context.engine.register(&dispatcher, registration).await {
                    // The run reads the registrations at its next check.
                    tracing::debug!(%dispatcher, %error, "Could not tell a dispatcher that this server stands by");
                }
            })
            .await;
    }

    async fn announce(&self) -> Result<(), db::Error> {
        let context = &self.context;
        let running: Vec<(Tenure, Run)> = context
            .ownership
            .held()
            .iter()
            .filter_map(|held| Some((held.tenure.clone(), run_of(held)?)))
            .collect();
        if running.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = running
            .iter()
            .map(|(_, run)| run.dispatcher_id.0.as_str())
            .collect();
        let query = sqlx::query_as(statement!("signals/waiting")).bind(&ids);
        let waiting: Vec<(String, i64, i64)> = query.all(&context.database).await?;
        let busy: HashSet<&str> = waiting.iter().map(|(id, ..)| id.as_str()).collect();
        for (tenure, run) in &running {
            if busy.contains(run.dispatcher_id.0.as_str()) {
                context
                    .ownership
                    .note(tenure, |held| held.busy_at = Instant::now());
            }
        }
        stream::iter(waiting)
            .for_each_concurrent(PARALLEL, |(id, signals, newest)| {
                let found = running.iter().find(|(_, run)| run.dispatcher_id.0 == id);
                async move {
                    let Some((tenure, run)) = found else { return };
                    if !context.ownership.holds(tenure) {
                        return;
                    }
                    let news = Announcement {
                        signals: signals.unsigned_abs(),
                        newest,
                    };
                    let told = context.engine.announce(run, news).await;
                    context.contact.heard(&told);
                    if let Err(error) = told {
                        tracing::debug!(dispatcher = %run.dispatcher_id, %error, "Could not announce signals; trying on");
                    }
                }
            })
            .await;
        Ok(())
    }

    /// Gives up the dispatchers for which nothing has come for long: an idle run is no use to anybody, and costs its engine
    /// something. Whatever is left of one when this is cut short is removed by the supervisor.
    async fn rest(&self) -> Result<(), db::Error> {
        let context = &self.context;
        let idle = context.ownership.held().into_iter().filter(|held| {
            let names = (held.tenure.project.clone(), held.tenure.task_queue.clone());
            held.run.is_some()
                && held.busy_at.elapsed() >= context.settings.rest_after
                && !context.settings.projects.contains(&names)
        });
        for held in idle.take(PARALLEL).collect::<Vec<_>>() {
            self.rest_one(&held).await?;
        }
        Ok(())
    }

    #[tracing::instrument(name = "flow:rest_dispatcher", level = "debug", skip_all, fields(dispatcher = %held.tenure.dispatcher_id))]
    async fn rest_one(&self, held: &Held) -> Result<(), db::Error> {
        if self.lay_to_rest(held, "nothing waits for it").await? != Rest::Refused {
            tracing::info!(dispatcher = %held.tenure.dispatcher_id, "Dispatcher rests: no signal has come for it for long");
        }
        Ok(())
    }

    /// Removes the dispatchers that nobody wants any more and for which nothing waits.
    async fn remove(&self) -> Result<(), db::Error> {
        let held = self.context.ownership.held().into_iter();
        let unwanted = held.filter(|held| held.unwanted && held.run.is_some());
        for held in unwanted.take(PARALLEL).collect::<Vec<_>>() {
            self.remove_one(&held).await?;
        }
        Ok(())
    }

    /// It rests first, its run is ended and its heartbeat removed; the row goes last. Whatever cuts this short, the row is there for another
    /// server to go on. The next signal makes it anew, above its epoch.
    #[tracing::instrument(name = "flow:remove_dispatcher", level = "debug", skip_all, fields(dispatcher = %held.tenure.dispatcher_id))]
    async fn remove_one(&self, held: &Held) -> Result<(), db::Error> {
        let tenure = &held.tenure;
        if self.lay_to_rest(held, "it is removed").await? != Rest::Done {
            return Ok(());
        }
        let mut transaction = self.context.database.begin().await?;
        let tell = sqlx::query_scalar::<_, i64>(statement!("dispatchers/tell_removed"))
            .bind(&tenure.dispatcher_id)
            .bind(tenure.epoch)
            .bind(tenure.owner)
            .bind(trace::own());
        if within(tell.fetch_optional(&mut *transaction)).await?.is_none() {
            // Something waits after all: it is woken, and removed when that is routed.
            return Ok(());
        }
        let remove = sqlx::query(statement!("dispatchers/remove"))
            .bind(&tenure.dispatcher_id)
            .bind(tenure.epoch);
        within(remove.execute(&mut *transaction)).await?;
        within(transaction.commit()).await?;
        tracing::info!(dispatcher = %tenure.dispatcher_id, "Dispatcher removed, as it was wished");
        Ok(())
    }

    /// Gives a dispatcher up for which nothing waits, ends its run and removes its heartbeat.
    async fn lay_to_rest(&self, held: &Held, reason: &str) -> Result<Rest, db::Error> {
        let context = &self.context;
        let tenure = &held.tenure;
        let query = sqlx::query_scalar::<_, i64>(statement!("dispatchers/rest"))
            .bind(&tenure.dispatcher_id)
            .bind(tenure.epoch)
            .bind(tenure.owner)
            .bind(trace::own());
        if query.maybe(&context.database).await?.is_none() {
            // Something waits after all, or it is another's.
            context
                .ownership
                .note(tenure, |held| held.busy_at = Instant::now());
            return Ok(Rest::Refused);
        }
        context.ownership.forget(tenure);
        let mut rest = Rest::Done;
        if let Some(run) = run_of(held)
            && let Err(error) = context.engine.end(&run, reason).await
        {
            rest = Rest::LeftSomething;
            tracing::debug!(dispatcher = %tenure.dispatcher_id, %error, "Could not end the run of a dispatcher that rests; the supervisor will");
        }
        let remove = context
            .heartbeats
            .remove(&tenure.dispatcher_id, tenure.epoch, tenure.owner);
        if let Err(error) = remove.await {
            rest = Rest::LeftSomething;
            tracing::debug!(dispatcher = %tenure.dispatcher_id, %error, "Could not remove a heartbeat; the supervisor will");
        }
        Ok(rest)
    }
}
