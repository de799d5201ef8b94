//! The embedded engine: runs executions inside this process, for `dev` and for people without Temporal.
//!
//! It runs the nodes of a graph one after the other in topological order. A run is durable without being written down
//! at first: its claim is committed before it begins, and when its server is lost another claims it again under the same
//! execution id. What must not be done twice is remembered in `embedded_runs` (finished `http` nodes, long waits), and a
//! run that was begun before goes on from its first unfinished node. Graphs without waiting and without effects outside
//! (`noop`, `fail`) are over within the start itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Close, CloseStatus, Engine, EngineUnavailable, OpenRun, Page, Reach, RunState, StartOutcome, StartRequest,
};
use crate::db::{self, Database, statement, within};
use crate::graph::Node;
use crate::id::{ExecutionId, ServerId, Token};
use crate::presence::Presence;
use crate::task::Bell;

/// The node types that run here; others need Temporal.
const KNOWN: [&str; 4] = ["noop", "wait", "http", "fail"];
/// Shorter waits are not worth a write: after a crash they are waited again.
const REMEMBER_WAITS: Duration = Duration::from_secs(5);
const HTTP_TIMEOUT: Duration = Duration::from_secs(30);

/// See the module.
pub struct EmbeddedEngine {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    presence: Presence,
    runs: Mutex<HashMap<ExecutionId, Handle>>,
    closes: Mutex<Vec<Close>>,
    closed: Bell,
    http: reqwest::Client,
}

struct Handle {
    token: Token,
    /// Under which id of this server it was begun: past that lease it is not ours any more.
    holder: ServerId,
    cancel: CancellationToken,
}

/// How far a run has come.
#[derive(Default)]
struct Progress {
    position: usize,
    /// What is left of a wait that had begun before.
    wait_left: Option<Duration>,
    outputs: Map<String, Value>,
}

enum Ended {
    Completed(Map<String, Value>),
    Failed {
        node: String,
        message: String,
    },
    Cancelled,
    /// The claim is not ours any more: say nothing.
    Lost,
}

impl EmbeddedEngine {
    /// An engine that runs what this server claims.
    pub fn new(database: Database, presence: Presence) -> Result<Self, reqwest::Error> {
        // Another part of the program may have chosen the same provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(HTTP_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("stationmaster/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let inner = Inner {
            database,
            presence,
            runs: Mutex::default(),
            closes: Mutex::default(),
            closed: Bell::default(),
            http,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    async fn begin(&self, request: &StartRequest) -> StartOutcome {
        if let Some(node) = request
            .graph
            .nodes()
            .iter()
            .find(|node| !KNOWN.contains(&node.kind.as_str()))
        {
            return StartOutcome::Refused {
                message: format!(
                    "the embedded engine does not run nodes of type {:?} (node {:?}); it runs {}. Other types need the engine temporal",
                    node.kind,
                    node.id,
                    KNOWN.join(", ")
                ),
            };
        }
        if let Some(close) = run_at_once(request) {
            return StartOutcome::Closed(close);
        }
        let Some(holder) = self.inner.presence.holder() else {
            return StartOutcome::Unavailable {
                message: "this server's lease has run out".to_owned(),
            };
        };
        let progress = match self.progress(request).await {
            Ok(progress) => progress,
            Err(error) => {
                return StartOutcome::Unavailable {
                    message: error.to_string(),
                };
            }
        };
        let cancel = CancellationToken::new();
        let handle = Handle {
            token: request.token,
            holder,
            cancel: cancel.clone(),
        };
        if let Some(former) = self.inner.runs().insert(request.execution_id, handle) {
            former.cancel.cancel();
        }
        let run = Run {
            inner: Arc::clone(&self.inner),
            request: request.clone(),
            holder,
            cancel,
        };
        tokio::spawn(run.run(progress));
        StartOutcome::Running {
            run_id: holder.to_string(),
        }
    }

    async fn progress(&self, request: &StartRequest) -> Result<Progress, db::Error> {
        if !request.again {
            return Ok(Progress::default());
        }
        let row: Option<(i32, Option<f64>, String)> = within(
            sqlx::query_as(statement!("embedded/resume"))
                .bind(request.execution_id)
                .fetch_optional(self.inner.database.pool()),
        )
        .await?;
        Ok(
            row.map_or_else(Progress::default, |(position, wake_in, outputs)| Progress {
                position: usize::try_from(position).unwrap_or_default(),
                wait_left: wake_in.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
                outputs: serde_json::from_str(&outputs).unwrap_or_default(),
            }),
        )
    }

    /// Stops every run of this server without ending it: another server will claim it again.
    pub fn abandon_all(&self) {
        for (_, handle) in self.inner.runs().drain() {
            handle.cancel.cancel();
        }
    }
}

/// A graph that neither waits nor reaches outside is over before it could be written down as begun.
fn run_at_once(request: &StartRequest) -> Option<Close> {
    let nodes = request.graph.nodes();
    let first_fail = nodes.iter().find(|node| node.kind == "fail");
    if nodes
        .iter()
        .take_while(|node| node.kind != "fail")
        .any(|node| node.kind != "noop")
    {
        return None;
    }
    let ended = match first_fail {
        Some(node) => Ended::Failed {
            node: node.id.clone(),
            message: fail_message(node),
        },
        None => Ended::Completed(Map::new()),
    };
    close(request, ended)
}

fn fail_message(node: &Node) -> String {
    node.text("message")
        .unwrap_or_else(|| "the node says so".to_owned())
}

fn close(request: &StartRequest, ended: Ended) -> Option<Close> {
    let raw = |value: &Value| RawValue::from_string(value.to_string()).ok();
    let (status, output, error) = match ended {
        Ended::Completed(outputs) if outputs.is_empty() => (CloseStatus::Completed, None, None),
        Ended::Completed(outputs) => (CloseStatus::Completed, raw(&Value::Object(outputs)), None),
        Ended::Failed { node, message } => (
            CloseStatus::Failed,
            None,
            raw(&json!({ "message": message, "node": node })),
        ),
        Ended::Cancelled => (
            CloseStatus::Cancelled,
            None,
            raw(&json!({ "message": "cancelled" })),
        ),
        Ended::Lost => return None,
    };
    Some(Close {
        execution_id: request.execution_id,
        token: Some(request.token),
        status,
        output,
        error,
    })
}

struct Run {
    inner: Arc<Inner>,
    request: StartRequest,
    holder: ServerId,
    cancel: CancellationToken,
}

impl Run {
    async fn run(self, progress: Progress) {
        let ended = tokio::select! {
            ended = self.walk(progress) => ended,
            () = self.cancel.cancelled() => Ended::Cancelled,
        };
        let mine = {
            let mut runs = self.inner.runs();
            let mine = runs
                .get(&self.request.execution_id)
                .is_some_and(|handle| handle.token == self.request.token);
            if mine {
                runs.remove(&self.request.execution_id);
            }
            mine
        };
        // A run that was abandoned or replaced is somebody else's to end.
        if let Some(close) = close(&self.request, ended).filter(|_| mine) {
            self.inner
                .closes
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(close);
            self.inner.closed.ring();
        }
    }

    async fn walk(&self, mut progress: Progress) -> Ended {
        for (index, node) in self
            .request
            .graph
            .nodes()
            .iter()
            .enumerate()
            .skip(progress.position)
        {
            if !self.inner.presence.is(self.holder) {
                return Ended::Lost;
            }
            match node.kind.as_str() {
                "wait" if !self.wait(index, node, &mut progress).await => return Ended::Lost,
                "http" if !self.is_still_wanted().await => return Ended::Lost,
                "http" => match self.call(node).await {
                    Ok(output) => {
                        progress.outputs.insert(node.id.clone(), output);
                        if !self.remember(index + 1, None, &progress).await {
                            return Ended::Lost;
                        }
                    }
                    Err(message) => {
                        return Ended::Failed {
                            node: node.id.clone(),
                            message,
                        };
                    }
                },
                "fail" => {
                    return Ended::Failed {
                        node: node.id.clone(),
                        message: fail_message(node),
                    };
                }
                _ => {}
            }
        }
        if self.inner.presence.is(self.holder) {
            Ended::Completed(progress.outputs)
        } else {
            Ended::Lost
        }
    }

    async fn wait(&self, index: usize, node: &Node, progress: &mut Progress) -> bool {
        let seconds = node.number("seconds").unwrap_or_default();
        let whole = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let left = match progress.wait_left.take() {
            Some(left) => left,
            None if whole >= REMEMBER_WAITS => {
                if !self.remember(index, Some(whole), progress).await {
                    return false;
                }
                whole
            }
            None => whole,
        };
        tokio::time::sleep(left).await;
        true
    }

    /// Somebody may have ended the execution meanwhile, or taken it over: nothing more may reach outside then.
    async fn is_still_wanted(&self) -> bool {
        let query = "select exists (select from stationmaster_internal.executions_active where execution_id = $1 and token = $2)";
        let query = sqlx::query_scalar(query)
            .bind(self.request.execution_id)
            .bind(self.request.token);
        // A database that does not answer forbids nothing: our lease, checked before, still holds.
        within(query.fetch_one(self.inner.database.pool()))
            .await
            .unwrap_or(true)
    }

    async fn call(&self, node: &Node) -> Result<Value, String> {
        let url = node.text("url").ok_or("an http node needs a url")?;
        let method = node
            .text("method")
            .unwrap_or_else(|| "POST".to_owned())
            .to_ascii_uppercase();
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
        let mut call = self.inner.http.request(method, &url);
        if let Some(body) = node.setting("body") {
            call = call
                .header("content-type", "application/json")
                .body(body.get().to_owned());
        }
        let id = format!("{}:{}", self.request.execution_id.workflow_id(), node.id);
        let answer = call
            .header("idempotency-key", id)
            .send()
            .await
            .map_err(|error| crate::task::chain(&error))?;
        let status = answer.status();
        if status.is_success() {
            Ok(json!({ "status": status.as_u16() }))
        } else {
            Err(format!("{url} answered {status}"))
        }
    }

    /// Writes progress down, again and again until the database answers. False: the run is not ours any more.
    async fn remember(&self, position: usize, wait: Option<Duration>, progress: &Progress) -> bool {
        let outputs = Value::Object(progress.outputs.clone()).to_string();
        loop {
            let written = within(
                sqlx::query_scalar::<_, ExecutionId>(statement!("embedded/advance"))
                    .bind(self.request.execution_id)
                    .bind(self.request.token)
                    .bind(i32::try_from(position).unwrap_or(i32::MAX))
                    .bind(wait.map(|wait| wait.as_secs_f64()))
                    .bind(&outputs)
                    .fetch_optional(self.inner.database.pool()),
            )
            .await;
            match written {
                Ok(row) => return row.is_some(),
                Err(_) if !self.inner.presence.is(self.holder) => return false,
                Err(_) => tokio::time::sleep(Duration::from_millis(250)).await,
            }
        }
    }
}

impl Inner {
    fn runs(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionId, Handle>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for EmbeddedEngine {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn reach(&self) -> Reach {
        Reach::Local
    }

    /// The nodes that run here take what they need from the graph.
    fn reads_input(&self) -> bool {
        false
    }

    fn start<'a>(&'a self, request: &'a StartRequest, _deadline: Duration) -> BoxFuture<'a, StartOutcome> {
        self.begin(request).boxed()
    }

    fn describe<'a>(
        &'a self,
        executions: &'a [ExecutionId],
    ) -> BoxFuture<'a, Result<Vec<RunState>, EngineUnavailable>> {
        let run_id = self.inner.presence.id().to_string();
        let runs = self.inner.runs();
        let state = |id| {
            if runs.get(id).is_some_and(|run| self.inner.presence.is(run.holder)) {
                RunState::Running {
                    run_id: run_id.clone(),
                }
            } else {
                RunState::NotFound
            }
        };
        let states = executions.iter().map(state).collect();
        async move { Ok(states) }.boxed()
    }

    fn cancel<'a>(
        &'a self,
        execution: ExecutionId,
        _reason: &'a str,
    ) -> BoxFuture<'a, Result<(), EngineUnavailable>> {
        if let Some(handle) = self.inner.runs().get(&execution) {
            handle.cancel.cancel();
        }
        async { Ok(()) }.boxed()
    }

    fn terminate<'a>(
        &'a self,
        run: &'a OpenRun,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), EngineUnavailable>> {
        self.cancel(run.execution_id, reason)
    }

    fn closed_since(
        &self,
        _since: Timestamp,
    ) -> BoxFuture<'_, Result<(Vec<Close>, Timestamp), EngineUnavailable>> {
        async {
            loop {
                let closes =
                    std::mem::take(&mut *self.inner.closes.lock().unwrap_or_else(PoisonError::into_inner));
                if !closes.is_empty() {
                    return Ok((closes, Timestamp::now()));
                }
                self.inner.closed.rung().await;
            }
        }
        .boxed()
    }

    fn open_runs(&self, _page: Option<Vec<u8>>) -> BoxFuture<'_, Result<Page<OpenRun>, EngineUnavailable>> {
        let run_id = self.inner.presence.id().to_string();
        let rows = self
            .inner
            .runs()
            .keys()
            .map(|id| OpenRun {
                execution_id: *id,
                run_id: run_id.clone(),
            })
            .collect();
        async move { Ok(Page { rows, next: None }) }.boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), EngineUnavailable>> {
        async { Ok(()) }.boxed()
    }
}
