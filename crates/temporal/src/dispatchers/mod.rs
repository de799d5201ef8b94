//! Dispatchers as Temporal workflows: the contract of [`stationmaster_core::engine::dispatchers`] on Temporal.
//!
//! ```text
//!   mod          the contract, one method after the other
//!    |- message      what is sent, and what is read from memos         pure
//!    |- workflow     the dispatcher itself, written with the SDK
//!    `- worker       the thread that runs it in the owning process
//! ```
//!
//! A run is polled only by the process that owns it: its task queue is that process's own, so a zombie gets no task of a newer
//! owner. What a run does to the world it does by activities through the desk, which is fenced by the epoch; signals stay in the
//! inbox of PostgreSQL, so a run that is terminated takes nothing along.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use stationmaster_core::engine::dispatchers::state::{Announcement, Registration, Status};
use stationmaster_core::engine::dispatchers::{Desk, DispatcherEngine, OpenRun, Run, RunRequest, RunState};
use stationmaster_core::engine::{EngineUnavailable, Page, Reach, Told};
use stationmaster_core::id::{DispatcherId, Epoch, ServerId};
use temporalio_client::grpc::WorkflowService;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::query::v1::WorkflowQuery;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    QueryWorkflowRequest, SignalWithStartWorkflowExecutionRequest,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::config::{ConfigError, TemporalConfig};
use crate::engine::{TemporalEngine, available};
use crate::link::CallError;
use crate::outcome::{Verdict, judge, known};
use crate::payload;
use crate::run::named;

mod message;
#[cfg(test)]
mod tests;
mod worker;
mod workflow;

use worker::WorkerThread;

const OPEN: &str = r#"WorkflowId STARTS_WITH "dispatcher-" AND ExecutionStatus = "Running""#;
/// How often a start terminates a run that is in its way before it gives up for this time.
const IN_THE_WAY: u32 = 3;

/// Dispatchers on a Temporal cluster.
pub struct TemporalDispatchers {
    engine: Arc<TemporalEngine>,
    config: TemporalConfig,
    task_queue: String,
    desk: OnceLock<Arc<dyn Desk>>,
    /// Started with the first run: a server without dispatchers polls nothing.
    worker: Mutex<Option<WorkerThread>>,
    /// Starts of which nobody knows whether they arrived: before such a one is repeated, Temporal is asked.
    in_doubt: Mutex<HashSet<String>>,
}

impl TemporalDispatchers {
    /// Dispatchers on the cluster of this engine, over its connection. Nothing is sent yet.
    pub fn new(engine: Arc<TemporalEngine>, config: &TemporalConfig) -> Result<Self, ConfigError> {
        config.worker_options()?;
        Ok(Self {
            engine,
            config: config.clone(),
            task_queue: format!("stationmaster-dispatchers-{}", Uuid::now_v7()),
            desk: OnceLock::new(),
            worker: Mutex::default(),
            in_doubt: Mutex::default(),
        })
    }

    async fn start(&self, request: &RunRequest, deadline: Duration) -> Result<String, EngineUnavailable> {
        let ends_at = Instant::now() + deadline;
        self.man_the_desk().map_err(EngineUnavailable::Away)?;
        let request_id = message::request_id(request);
        if self.in_doubt.lock().contains(&request_id)
            && let Some(run_id) = self.started_before(request, ends_at).await?
        {
            self.in_doubt.lock().remove(&request_id);
            return Ok(run_id);
        }
        let sent = message::start(
            request,
            &self.engine.namespace,
            &self.engine.identity,
            &self.task_queue,
        )
        .map_err(|error| EngineUnavailable::Away(error.to_string()))?;
        self.send(request, sent, ends_at).await
    }

    /// Sends a start until its run is there; what is in its way is terminated.
    async fn send(
        &self,
        request: &RunRequest,
        sent: SignalWithStartWorkflowExecutionRequest,
        ends_at: Instant,
    ) -> Result<String, EngineUnavailable> {
        let request_id = sent.request_id.clone();
        for _ in 0..IN_THE_WAY {
            let rpc = WorkflowService::signal_with_start_workflow_execution;
            let in_the_way = match self.engine.link.call(ends_at, sent.clone(), rpc).await {
                Ok(answer) if answer.started => {
                    self.in_doubt.lock().remove(&request_id);
                    return Ok(answer.run_id);
                }
                // A server that does not know the policy has only signalled what runs there.
                Ok(answer) => answer.run_id,
                Err(error) => match judge(&error) {
                    Verdict::Exists { run_id: Some(run_id) } => run_id,
                    Verdict::InDoubt => {
                        self.in_doubt.lock().insert(request_id);
                        return available(Err(error));
                    }
                    _ => return available(Err(error)),
                },
            };
            let words = "a newer owner of this dispatcher starts its own run";
            let id = &request.tenure.dispatcher_id.0;
            available(self.engine.end_run(id, &in_the_way, "", words, ends_at).await)?;
        }
        let words = "other runs under the same id are in the way again and again";
        Err(EngineUnavailable::Away(words.to_owned()))
    }

    /// The run that an earlier try of the same request has started, if it did.
    async fn started_before(
        &self,
        request: &RunRequest,
        ends_at: Instant,
    ) -> Result<Option<String>, EngineUnavailable> {
        let run = self.engine.newest_run(&request.tenure.dispatcher_id.0, ends_at);
        let info = available(run.await)?;
        let ours = |info: &WorkflowExecutionInfo| {
            let (epoch, server, attempt) = message::read_memo(info);
            info.status() == WorkflowExecutionStatus::Running
                && epoch == Some(request.tenure.epoch)
                && server == Some(request.tenure.owner)
                && attempt == Some(request.attempt)
        };
        Ok(info.filter(ours).map(|info| first_run(&info)))
    }

    async fn run_state(&self, run: &Run) -> Result<RunState, CallError> {
        let ends_at = self.engine.rpc_ends_at();
        let info = self.engine.newest_run(&run.dispatcher_id.0, ends_at).await?;
        let runs = info.is_some_and(|info| {
            info.status() == WorkflowExecutionStatus::Running && first_run(&info) == run.run_id
        });
        Ok(if runs { RunState::Running } else { RunState::Gone })
    }

    /// Sends a signal to whatever run the dispatcher has; no run is no error.
    async fn tell<T: serde::Serialize + Sync>(
        &self,
        dispatcher: &DispatcherId,
        signal: &'static str,
        value: &T,
    ) -> Result<(), CallError> {
        let message = message::signal(
            dispatcher,
            signal,
            value,
            &self.engine.namespace,
            &self.engine.identity,
        );
        let rpc = WorkflowService::signal_workflow_execution;
        known(self.engine.ask(message, rpc).await).map(drop)
    }

    async fn ask(&self, dispatcher: &DispatcherId) -> Result<Option<Status>, CallError> {
        let message = QueryWorkflowRequest {
            namespace: self.engine.namespace.clone(),
            execution: Some(named(&dispatcher.0, "")),
            query: Some(WorkflowQuery {
                query_type: workflow::STATUS.to_owned(),
                ..WorkflowQuery::default()
            }),
            ..QueryWorkflowRequest::default()
        };
        let answer = self.engine.ask(message, WorkflowService::query_workflow).await;
        let status = known(answer)?.and_then(|answer| payload::to_json(answer.query_result));
        Ok(status.and_then(|status| serde_json::from_str(status.get()).ok()))
    }

    fn man_the_desk(&self) -> Result<(), String> {
        let desk = self.desk.get().ok_or("the desk is not open")?;
        self.worker
            .lock()
            .get_or_insert_with(|| WorkerThread::start(&self.config, &self.task_queue, Arc::clone(desk)));
        Ok(())
    }
}

/// The first run of a chain; a server that does not tell has a chain of one.
fn first_run(info: &WorkflowExecutionInfo) -> String {
    if info.first_run_id.is_empty() {
        let run = info.execution.as_ref();
        run.map(|run| run.run_id.clone()).unwrap_or_default()
    } else {
        info.first_run_id.clone()
    }
}

fn open_run(info: WorkflowExecutionInfo) -> Option<OpenRun> {
    let (epoch, server_id, _): (Option<Epoch>, Option<ServerId>, _) = message::read_memo(&info);
    let started_at = info
        .start_time
        .and_then(|at| jiff::Timestamp::new(at.seconds, at.nanos).ok());
    let run = info.execution?;
    Some(OpenRun {
        workflow_id: run.workflow_id,
        run_id: run.run_id,
        epoch,
        server_id,
        started_at,
    })
}

impl DispatcherEngine for TemporalDispatchers {
    fn name(&self) -> &'static str {
        "temporal"
    }

    fn reach(&self) -> Reach {
        Reach::Shared
    }

    fn task_queue(&self) -> String {
        self.task_queue.clone()
    }

    fn open(&self, desk: Arc<dyn Desk>) {
        // A second desk would be the same one.
        let _ = self.desk.set(desk);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let worker = self.worker.lock().take();
        async {
            if let Some(worker) = worker {
                worker.stop().await;
            }
        }
        .boxed()
    }

    fn replace<'a>(&'a self, request: &'a RunRequest, deadline: Duration) -> Told<'a, String> {
        self.start(request, deadline).boxed()
    }

    fn state<'a>(&'a self, run: &'a Run) -> Told<'a, RunState> {
        self.run_state(run).map(available).boxed()
    }

    fn announce<'a>(&'a self, run: &'a Run, news: Announcement) -> Told<'a, ()> {
        async move { available(self.tell(&run.dispatcher_id, workflow::ANNOUNCE, &news).await) }.boxed()
    }

    fn register<'a>(&'a self, dispatcher: &'a DispatcherId, server: Registration) -> Told<'a, ()> {
        async move { available(self.tell(dispatcher, workflow::REGISTER, &server).await) }.boxed()
    }

    fn leave<'a>(&'a self, dispatcher: &'a DispatcherId, server: ServerId) -> Told<'a, ()> {
        async move { available(self.tell(dispatcher, workflow::LEAVE, &server).await) }.boxed()
    }

    fn end<'a>(&'a self, run: &'a Run, reason: &'a str) -> Told<'a, ()> {
        let ends_at = self.engine.rpc_ends_at();
        self.engine
            .end_run(&run.dispatcher_id.0, "", &run.run_id, reason, ends_at)
            .map(available)
            .boxed()
    }

    fn terminate<'a>(&'a self, run: &'a OpenRun, reason: &'a str) -> Told<'a, ()> {
        let ends_at = self.engine.rpc_ends_at();
        self.engine
            .end_run(&run.workflow_id, &run.run_id, "", reason, ends_at)
            .map(available)
            .boxed()
    }

    fn open_runs(&self, page: Option<Vec<u8>>) -> Told<'_, Page<OpenRun>> {
        self.engine.list_as(OPEN, page, open_run).map(available).boxed()
    }

    fn status<'a>(&'a self, dispatcher: &'a DispatcherId) -> Told<'a, Option<Status>> {
        self.ask(dispatcher).map(available).boxed()
    }
}
