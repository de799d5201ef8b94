//! One run of an execution: the nodes of its graph, one after the other in topological order.
//!
//! What must not be done twice is remembered in `embedded_runs` (finished `http` nodes, long waits), and a run that was begun before
//! goes on from its first unfinished node. Graphs without waiting and without effects outside (`noop`, `fail`) are over within the
//! start itself. Past the lease of its server a run says nothing more: it is somebody else's.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::executions::Inner;
use super::nodes::LONGEST_WAIT;
use crate::db::{self, Database, Read as _, statement};
use crate::engine::{Close, CloseStatus, StartRequest};
use crate::graph::Node;
use crate::id::{ExecutionId, ServerId};
use crate::task::panic_message;
use crate::wake::guard::Forbidden;
use crate::wake::{NamedBy, causes};

/// Shorter waits are not worth a write: after a crash they are waited again.
const REMEMBER_WAITS: Duration = Duration::from_secs(5);
/// The longest that a call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How far a run has come.
#[derive(Default)]
pub(super) struct Progress {
    position: usize,
    /// What is left of a wait that had begun before.
    wait_left: Option<Duration>,
    outputs: Map<String, Value>,
    /// What is left of the time that the run may take; `None`: it may take for ever.
    time_left: Option<Duration>,
}

impl Progress {
    /// Where a run begins: at its first node, or where an earlier claim of it stood.
    pub(super) async fn of(database: &Database, request: &StartRequest) -> Result<Self, db::Error> {
        let time_left = Self::time_left(database, request).await?;
        let begun = Self {
            time_left,
            ..Self::default()
        };
        if !request.again {
            return Ok(begun);
        }
        let row: Option<(i32, Option<f64>, String)> = sqlx::query_as(statement!("embedded/resume"))
            .bind(request.execution_id)
            .maybe(database)
            .await?;
        Ok(row.map_or(begun, |(position, wake_in, outputs)| Self {
            position: usize::try_from(position).unwrap_or_default(),
            wait_left: wake_in.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
            outputs: serde_json::from_str(&outputs).unwrap_or_default(),
            time_left,
        }))
    }

    /// The time counts from the first start, whichever server goes on with the run.
    async fn time_left(database: &Database, request: &StartRequest) -> Result<Option<Duration>, db::Error> {
        let Some(timeout) = request.run_timeout else {
            return Ok(None);
        };
        let seconds: f64 = sqlx::query_scalar(statement!("embedded/limit"))
            .bind(request.execution_id)
            .bind(request.token)
            .bind(timeout.as_secs_f64())
            .one(database)
            .await?;
        Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or_default()))
    }
}

enum Ended {
    Completed(Map<String, Value>),
    Failed {
        node: String,
        message: String,
    },
    Cancelled,
    TimedOut,
    /// The claim is not ours any more: say nothing.
    Lost,
}

/// A run that panics has failed: its slot must not be held by a run that is not there.
async fn despite_panics(walk: impl Future<Output = Ended>) -> Ended {
    AssertUnwindSafe(walk)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| {
            let panic = panic_message(&*panic);
            tracing::error!(panic, "A run panicked; it has failed");
            Ended::Failed {
                node: String::new(),
                message: format!("the run panicked: {panic}"),
            }
        })
}

/// A graph that neither waits nor reaches outside is over before it could be written down as begun.
pub(super) fn run_at_once(request: &StartRequest) -> Option<Close> {
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
    // Settled with its claim, which knows its holder.
    close(request, None, ended)
}

fn fail_message(node: &Node) -> String {
    node.text("message")
        .unwrap_or_else(|| "the node says so".to_owned())
}

fn close(request: &StartRequest, holder: Option<ServerId>, ended: Ended) -> Option<Close> {
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
        Ended::TimedOut => (
            CloseStatus::TimedOut,
            None,
            raw(&json!({ "message": "the run exceeded the time allowed for it", "type": "TimedOut" })),
        ),
        Ended::Lost => return None,
    };
    Some(Close {
        execution_id: request.execution_id,
        token: Some(request.token),
        holder,
        run_id: None,
        closed_at: None,
        output_omitted: None,
        status,
        output,
        error,
    })
}

/// A run under way.
pub(super) struct Run {
    pub(super) inner: Arc<Inner>,
    pub(super) request: StartRequest,
    pub(super) holder: ServerId,
    pub(super) cancel: CancellationToken,
}

impl Run {
    pub(super) async fn run(self, progress: Progress) {
        let time_left = progress.time_left;
        let ended = tokio::select! {
            ended = despite_panics(self.walk(progress)) => ended,
            () = sleep_for(time_left) => Ended::TimedOut,
            () = self.cancel.cancelled() => Ended::Cancelled,
        };
        let mine = {
            let mut runs = self.inner.runs.lock();
            let mine = runs
                .get(&self.request.execution_id)
                .is_some_and(|handle| handle.token == self.request.token);
            if mine {
                runs.remove(&self.request.execution_id);
            }
            mine
        };
        // A run that was abandoned or replaced is somebody else's to end.
        if let Some(close) = close(&self.request, Some(self.holder), ended).filter(|_| mine) {
            self.inner.closes.lock().push(close);
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
                "wait"
                    if node
                        .number("seconds")
                        .is_some_and(|seconds| seconds > LONGEST_WAIT) =>
                {
                    return Ended::Failed {
                        node: node.id.clone(),
                        message: format!(
                            "a wait of more than {LONGEST_WAIT} seconds, a hundred years, cannot be waited"
                        ),
                    };
                }
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
        // A database that does not answer forbids nothing as long as our lease holds; and the answer may be as old as a stop.
        query.one(&self.inner.database).await.unwrap_or(true) && self.inner.presence.is(self.holder)
    }

    async fn call(&self, node: &Node) -> Result<Value, String> {
        let url = node.text("url").ok_or("an http node needs a url")?;
        let method = node
            .text("method")
            .unwrap_or_else(|| "POST".to_owned())
            .to_ascii_uppercase();
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
        let url: Url = url
            .parse()
            .map_err(|error| format!("{url:?} is no URL: {error}"))?;
        let client = self
            .inner
            .http
            .client_for(&url, NamedBy::Tenant)
            .map_err(|_| not_public(&url))?;
        let mut call = client.request(method, url.clone()).timeout(CALL_TIMEOUT);
        if let Some(body) = node.setting("body") {
            call = call
                .header("content-type", "application/json")
                .body(body.get().to_owned());
        }
        let id = format!("{}:{}", self.request.execution_id.workflow_id(), node.id);
        let answer = call.header("idempotency-key", id).send().await.map_err(|error| {
            if is_forbidden(&error) {
                not_public(&url)
            } else {
                format!("{url} did not answer: {}", causes(&error))
            }
        })?;
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
            let written = sqlx::query_scalar::<_, ExecutionId>(statement!("embedded/advance"))
                .bind(self.request.execution_id)
                .bind(self.request.token)
                .bind(i32::try_from(position).unwrap_or(i32::MAX))
                .bind(wait.map(|wait| wait.as_secs_f64()))
                .bind(&outputs)
                .maybe(&self.inner.database)
                .await;
            match written {
                Ok(row) => return row.is_some(),
                Err(_) if !self.inner.presence.is(self.holder) => return false,
                Err(_) => tokio::time::sleep(Duration::from_millis(250)).await,
            }
        }
    }
}

/// Returns after this time; never, when there is none.
async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Was it not sent, because a name stands for an address that may not be called?
fn is_forbidden(error: &reqwest::Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
        .any(<dyn std::error::Error + 'static>::is::<Forbidden>)
}

fn not_public(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    format!("{host} is not a public address; an operator can allow it by executions.allow_targets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_that_panics_has_failed() {
        let ended = despite_panics(async { panic!("out of steam") }).await;
        let Ended::Failed { message, .. } = ended else {
            panic!("it ended otherwise");
        };
        assert_eq!(message, "the run panicked: out of steam");
    }
}
