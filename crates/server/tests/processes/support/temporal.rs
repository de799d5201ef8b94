//! A Temporal dev server as a child process, and one namespace of it as a test sees it: not by our engine, but by the
//! server's own interface.

use std::collections::HashMap;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use temporalio_client::tonic::{Code, IntoRequest as _, Status};
use temporalio_client::{Connection, ConnectionOptions, Url, grpc::WorkflowService};
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeNamespaceRequest, GetWorkflowExecutionHistoryRequest, ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse,
};
use uuid::Uuid;

use super::{PATIENCE, eventually, setting};

/// Namespaces that every dev server is born with, so that each test can have its own.
const NAMESPACES: usize = 32;

/// The server of all tests, and how many of its namespaces were given out.
static SHARED: Mutex<(Weak<DevServer>, usize)> = Mutex::new((Weak::new(), 0));
static NEXT_NAMESPACE: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct DevServer {
    pub(crate) address: String,
    child: Child,
}

impl DevServer {
    /// The server of all tests that do not harm it, and the number of a namespace that nobody had. It lives while any of them does; when
    /// its namespaces are used up, the next test gets a new one.
    fn shared() -> (Arc<Self>, usize) {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let (server, given) = &mut *shared;
        if let Some(server) = server.upgrade().filter(|_| *given < NAMESPACES) {
            *given += 1;
            return (server, *given - 1);
        }
        let server = Arc::new(Self::start(free_port(), None));
        *shared = (Arc::downgrade(&server), 1);
        (server, 0)
    }

    /// A server of one's own; without a file it forgets everything when it ends.
    pub(crate) fn start(port: u16, file: Option<&Path>) -> Self {
        let program = setting("STATIONMASTER_TEST_TEMPORAL_CLI");
        let mut command = Command::new(&program);
        command
            .args([
                "server",
                "start-dev",
                "--headless",
                "--ip",
                "127.0.0.1",
                "--log-level",
                "error",
            ])
            .args(["--port", &port.to_string()]);
        for number in 0..NAMESPACES {
            command.args(["--namespace", &namespace(number)]);
        }
        if let Some(file) = file {
            command.arg("--db-filename").arg(file);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
        let mut server = Self {
            address: format!("127.0.0.1:{port}"),
            child,
        };
        let begun = Instant::now();
        while TcpStream::connect(&server.address).is_err() {
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("the dev server ended at once: {status}");
            }
            assert!(begun.elapsed() < PATIENCE, "the dev server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn namespace(number: usize) -> String {
    format!("line-{number}")
}

/// Does Temporal ask to be asked again?
fn is_busy(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::ResourceExhausted | Code::Unavailable | Code::DeadlineExceeded
    )
}

pub(crate) fn free_port() -> u16 {
    stationmaster_postgres::free_port().unwrap()
}

/// A namespace.
pub(crate) struct Temporal {
    pub(crate) address: String,
    pub(crate) namespace: String,
    connection: Connection,
    _server: Option<Arc<DevServer>>,
}

impl Temporal {
    /// A namespace of the shared server that no other test uses.
    pub(crate) async fn shared() -> Self {
        let (server, number) = tokio::task::spawn_blocking(DevServer::shared).await.unwrap();
        let address = server.address.clone();
        Self::connect_to(&address, namespace(number), Some(server)).await
    }

    /// A namespace of a server of the test's own.
    pub(crate) async fn of(server: &DevServer) -> Self {
        let number = NEXT_NAMESPACE.fetch_add(1, Ordering::Relaxed) % NAMESPACES;
        Self::connect_to(&server.address, namespace(number), None).await
    }

    /// This namespace of whatever server is at this address.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) async fn named(address: &str, namespace: &str) -> Self {
        Self::connect_to(address, namespace.to_owned(), None).await
    }

    async fn connect_to(address: &str, namespace: String, server: Option<Arc<DevServer>>) -> Self {
        let target: Url = format!("http://{address}").parse().unwrap();
        let mut connection = None;
        eventually("Temporal takes connections", async || {
            let options = ConnectionOptions::new(target.clone()).build();
            connection = Connection::connect(options).await.ok();
            connection.is_some()
        })
        .await;
        let temporal = Self {
            address: address.to_owned(),
            namespace,
            connection: connection.unwrap(),
            _server: server,
        };
        eventually("the namespace is there", async || temporal.is_there().await).await;
        temporal
    }

    pub(crate) fn service(&self) -> Box<dyn WorkflowService> {
        self.connection.workflow_service()
    }

    /// Does the server answer for the namespace?
    pub(crate) async fn is_there(&self) -> bool {
        let message = DescribeNamespaceRequest {
            namespace: self.namespace.clone(),
            ..DescribeNamespaceRequest::default()
        };
        let mut service = self.service();
        let call = service.describe_namespace(message.into_request());
        matches!(
            tokio::time::timeout(Duration::from_secs(1), call).await,
            Ok(Ok(_))
        )
    }

    /// Every run that the namespace has ever had, open and closed, each time that it was started.
    pub(crate) async fn runs(&self) -> Vec<WorkflowExecutionInfo> {
        let mut runs = Vec::new();
        let mut next_page_token = Vec::new();
        loop {
            let answer = self.page_of_runs(next_page_token).await;
            runs.extend(answer.executions);
            next_page_token = answer.next_page_token;
            if next_page_token.is_empty() {
                return runs;
            }
        }
    }

    /// Asked again when Temporal says that it is busy: a dev server throttles, and its one file is locked now and then.
    async fn page_of_runs(&self, next_page_token: Vec<u8>) -> ListWorkflowExecutionsResponse {
        let message = ListWorkflowExecutionsRequest {
            namespace: self.namespace.clone(),
            page_size: 1_000,
            next_page_token,
            ..ListWorkflowExecutionsRequest::default()
        };
        let begun = Instant::now();
        loop {
            let request = message.clone().into_request();
            match self.service().list_workflow_executions(request).await {
                Ok(answer) => return answer.into_inner(),
                Err(status) => assert!(
                    is_busy(&status) && begun.elapsed() < PATIENCE,
                    "Temporal lists no runs: {status}"
                ),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// How often each workflow id was run.
    pub(crate) async fn runs_by_id(&self) -> HashMap<String, usize> {
        let mut count = HashMap::new();
        for run in self.runs().await {
            *count
                .entry(run.execution.unwrap_or_default().workflow_id)
                .or_default() += 1;
        }
        count
    }

    /// The executions that are open.
    pub(crate) async fn open(&self) -> Vec<Uuid> {
        let open = |run: &WorkflowExecutionInfo| run.status() == WorkflowExecutionStatus::Running;
        let id = |run: WorkflowExecutionInfo| {
            run.execution
                .unwrap_or_default()
                .workflow_id
                .strip_prefix("execution-")?
                .parse()
                .ok()
        };
        self.runs()
            .await
            .into_iter()
            .filter(open)
            .filter_map(id)
            .collect()
    }

    /// Each of these executions has one run, and there is no other.
    pub(crate) async fn assert_one_run_each(&self, executions: impl IntoIterator<Item = Uuid>) {
        let wanted: HashMap<String, usize> = executions
            .into_iter()
            .map(|id| (format!("execution-{id}"), 1))
            .collect();
        eventually("visibility has caught up", async || {
            self.runs_by_id().await.len() >= wanted.len()
        })
        .await;
        assert_eq!(self.runs_by_id().await, wanted, "one run each, and no other");
    }

    /// Waits until Temporal has started a run of this execution.
    pub(crate) async fn until_started(&self, execution: Uuid) {
        eventually("Temporal has started the run", async || {
            !self.history(execution).await.is_empty()
        })
        .await;
    }

    /// The history of a run; empty when Temporal does not know it.
    pub(crate) async fn history(&self, execution: Uuid) -> Vec<HistoryEvent> {
        let run = WorkflowExecution {
            workflow_id: format!("execution-{execution}"),
            run_id: String::new(),
        };
        let message = GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace.clone(),
            execution: Some(run),
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let answer = self
            .service()
            .get_workflow_execution_history(message.into_request())
            .await;
        answer
            .ok()
            .and_then(|answer| answer.into_inner().history)
            .map(|history| history.events)
            .unwrap_or_default()
    }
}
