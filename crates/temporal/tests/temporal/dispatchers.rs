//! Runs of dispatchers on a real server: which one stays, what becomes of a start without an answer, and who is evicted.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use stationmaster_core::engine::dispatchers::state::Registration;
use stationmaster_core::engine::dispatchers::{
    Checked, Desk, DeskError, DispatcherEngine, Evicted, Routed, Run, RunRequest, RunState, Tenure,
};
use stationmaster_core::id::{DispatcherId, Epoch, ServerId};
use stationmaster_temporal::{TemporalConfig, TemporalDispatchers, TemporalEngine};
use temporalio_client::tonic::IntoRequest;
use temporalio_common::protos::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeWorkflowExecutionRequest, ListWorkflowExecutionsRequest, StartWorkflowExecutionRequest,
};
use uuid::Uuid;

use crate::support::{DevServer, Mode, PATIENCE, Proxy, Puppet, until_ready};

/// A desk that says who stands by and who is silent, and remembers whom it was told to evict.
#[derive(Default)]
struct Clerk {
    registered: Mutex<Vec<Registration>>,
    silent: Mutex<Vec<ServerId>>,
    evictions: Mutex<Vec<(Tenure, Vec<ServerId>)>>,
}

impl Desk for Clerk {
    fn route<'a>(&'a self, _tenure: &'a Tenure) -> BoxFuture<'a, Result<Routed, DeskError>> {
        async { Ok(Routed::default()) }.boxed()
    }

    fn check<'a>(&'a self, _tenure: &'a Tenure) -> BoxFuture<'a, Result<Checked, DeskError>> {
        let seen = Checked {
            superseded: false,
            registered: self.registered.lock().unwrap().clone(),
            silent: self.silent.lock().unwrap().clone(),
        };
        async { Ok(seen) }.boxed()
    }

    fn evict<'a>(
        &'a self,
        tenure: &'a Tenure,
        servers: &'a [ServerId],
    ) -> BoxFuture<'a, Result<Evicted, DeskError>> {
        let mut evictions = self.evictions.lock().unwrap();
        evictions.push((tenure.clone(), servers.to_vec()));
        self.registered
            .lock()
            .unwrap()
            .retain(|server| !servers.contains(&server.server_id));
        let evicted = Evicted {
            superseded: false,
            servers: servers.to_vec(),
        };
        async { Ok(evicted) }.boxed()
    }
}

/// Dispatchers as a server of their own has them.
async fn dispatchers(address: &str, clerk: &Arc<Clerk>) -> TemporalDispatchers {
    let config = TemporalConfig::new(address);
    let engine = Arc::new(TemporalEngine::new(&config).unwrap());
    until_ready(&engine).await;
    let dispatchers = TemporalDispatchers::new(engine, &config).unwrap();
    let desk: Arc<dyn Desk> = Arc::<Clerk>::clone(clerk);
    dispatchers.open(desk);
    dispatchers
}

fn request(project: &str, epoch: i64) -> RunRequest {
    RunRequest {
        tenure: Tenure {
            dispatcher_id: DispatcherId(format!("dispatcher-{project}-default")),
            project: project.to_owned(),
            task_queue: "default".to_owned(),
            owner: ServerId(Uuid::now_v7()),
            epoch: Epoch(epoch),
        },
        attempt: 1,
        check_interval: Duration::from_millis(300),
        evict_batch: 10,
        continue_after: 4_000,
    }
}

fn project() -> String {
    format!("p{}", Uuid::now_v7().simple())
}

fn run(request: &RunRequest, run_id: &str) -> Run {
    Run {
        dispatcher_id: request.tenure.dispatcher_id.clone(),
        run_id: run_id.to_owned(),
    }
}

async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE * 2, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How a run stands by the server's own word.
async fn status(puppet: &Puppet, workflow_id: &str, run_id: &str) -> WorkflowExecutionStatus {
    let message = DescribeWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        execution: Some(WorkflowExecution {
            workflow_id: workflow_id.to_owned(),
            run_id: run_id.to_owned(),
        }),
    };
    let mut service = puppet.service();
    let answer = service.describe_workflow_execution(message.into_request()).await;
    answer
        .unwrap()
        .into_inner()
        .workflow_execution_info
        .unwrap()
        .status()
}

async fn runs(puppet: &Puppet, workflow_id: &str) -> Vec<WorkflowExecutionInfo> {
    let message = ListWorkflowExecutionsRequest {
        namespace: "default".to_owned(),
        query: format!(r#"WorkflowId = "{workflow_id}""#),
        ..ListWorkflowExecutionsRequest::default()
    };
    let mut service = puppet.service();
    let answer = service.list_workflow_executions(message.into_request()).await;
    answer.unwrap().into_inner().executions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_runs_under_the_id_of_a_dispatcher_is_ended_before_its_run_starts() {
    let server = DevServer::shared();
    let puppet = Puppet::on(&server.address).await;
    let clerk = Arc::default();
    let dispatchers = dispatchers(&server.address, &clerk).await;
    let project = project();
    let first = request(&project, 1);
    let id = first.tenure.dispatcher_id.0.clone();
    let stranger = StartWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        workflow_id: id.clone(),
        workflow_type: Some(WorkflowType {
            name: "somebody-elses".to_owned(),
        }),
        task_queue: Some(TaskQueue {
            name: format!("queue-{project}"),
            ..TaskQueue::default()
        }),
        request_id: Uuid::now_v7().to_string(),
        ..StartWorkflowExecutionRequest::default()
    };
    let mut service = puppet.service();
    let stranger = service
        .start_workflow_execution(stranger.into_request())
        .await
        .unwrap()
        .into_inner()
        .run_id;
    let one = dispatchers.replace(&first, PATIENCE).await.unwrap();
    assert_eq!(
        status(&puppet, &id, &stranger).await,
        WorkflowExecutionStatus::Terminated
    );
    assert_eq!(status(&puppet, &id, &one).await, WorkflowExecutionStatus::Running);
    assert_eq!(
        dispatchers.state(&run(&first, &one)).await.unwrap(),
        RunState::Running
    );

    let second = request(&project, 2);
    let two = dispatchers.replace(&second, PATIENCE).await.unwrap();
    assert_eq!(
        status(&puppet, &id, &one).await,
        WorkflowExecutionStatus::Terminated
    );
    assert_eq!(
        dispatchers.state(&run(&first, &one)).await.unwrap(),
        RunState::Gone
    );
    assert_eq!(
        dispatchers.state(&run(&second, &two)).await.unwrap(),
        RunState::Running
    );
    // By the run of the epoch before nothing is ended any more.
    dispatchers.end(&run(&first, &one), "late").await.unwrap();
    assert_eq!(status(&puppet, &id, &two).await, WorkflowExecutionStatus::Running);
    dispatchers.end(&run(&second, &two), "done").await.unwrap();
    assert_eq!(
        status(&puppet, &id, &two).await,
        WorkflowExecutionStatus::Terminated
    );
    dispatchers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_whose_answer_was_lost_is_found_by_its_repeat_and_not_started_again() {
    let server = DevServer::shared();
    let puppet = Puppet::on(&server.address).await;
    let proxy = Proxy::before(&server.address, Mode::Open).await;
    let clerk = Arc::default();
    let dispatchers = dispatchers(&proxy.address, &clerk).await;
    let request = request(&project(), 1);
    let id = request.tenure.dispatcher_id.0.clone();
    proxy.set(Mode::AnswersLost);
    let lost = dispatchers.replace(&request, Duration::from_secs(3)).await;
    assert!(lost.is_err(), "{lost:?}");
    eventually("the start has arrived", async || {
        runs(&puppet, &id).await.len() == 1
    })
    .await;
    let begun = runs(&puppet, &id).await.remove(0).execution.unwrap().run_id;
    proxy.set(Mode::Open);
    let mut found = None;
    eventually("the repeat is answered", async || {
        found = dispatchers.replace(&request, Duration::from_secs(5)).await.ok();
        found.is_some()
    })
    .await;
    assert_eq!(found.as_deref(), Some(begun.as_str()), "the run of the first try");
    assert_eq!(
        status(&puppet, &id, &begun).await,
        WorkflowExecutionStatus::Running
    );
    assert_eq!(runs(&puppet, &id).await.len(), 1);
    dispatchers.end(&run(&request, &begun), "done").await.unwrap();
    dispatchers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_evicts_servers_that_stay_silent_and_nobody_else() {
    let server = DevServer::shared();
    let clerk: Arc<Clerk> = Arc::default();
    let dispatchers = dispatchers(&server.address, &clerk).await;
    let request = request(&project(), 1);
    let stands_by = |server_id| Registration {
        server_id,
        task_queue: "default".to_owned(),
    };
    let (lively, silent, owner) = (
        ServerId(Uuid::now_v7()),
        ServerId(Uuid::now_v7()),
        request.tenure.owner,
    );
    *clerk.registered.lock().unwrap() = [owner, lively, silent].map(stands_by).to_vec();
    // The owner is not heard of either, which says nothing: it is the one that looks.
    *clerk.silent.lock().unwrap() = vec![owner, silent];
    let run_id = dispatchers.replace(&request, PATIENCE).await.unwrap();
    eventually("somebody is evicted", async || {
        !clerk.evictions.lock().unwrap().is_empty()
    })
    .await;
    let mut told = None;
    eventually("the run tells of it", async || {
        told = dispatchers
            .status(&request.tenure.dispatcher_id)
            .await
            .ok()
            .flatten();
        told.as_ref()
            .is_some_and(|status| status.evicted == 1 && status.servers.len() == 2)
    })
    .await;
    let status = told.unwrap();
    assert_eq!(status.tenure, request.tenure);
    let evictions = clerk.evictions.lock().unwrap().clone();
    assert_eq!(evictions, [(request.tenure.clone(), vec![silent])]);
    dispatchers.end(&run(&request, &run_id), "done").await.unwrap();
    dispatchers.close().await;
}
