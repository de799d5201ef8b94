//! The thread on which this process's runs are worked on. The SDK's worker is not `Send`, so it has a thread and a small runtime
//! of its own. It connects when Temporal is there, and again whenever it was not, for ever.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::engine::dispatchers::Desk;
use stationmaster_core::retry::Backoff;
use temporalio_client::{Client, ClientOptions, Connection};
use temporalio_common::worker::WorkerDeploymentOptions;
use temporalio_sdk::runtime::{PollerBehavior, RuntimeOptions};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::workflow::{Deskwork, DispatcherWorkflow};
use crate::config::TemporalConfig;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A task that was stuck to a worker that is gone waits no longer than this.
const STICKY: Duration = Duration::from_secs(2);
/// Activities under way at the end get so long.
const GRACE: Duration = Duration::from_secs(1);
const AGAIN: Backoff = Backoff {
    base: Duration::from_millis(200),
    cap: Duration::from_secs(5),
};

/// See the module.
pub(super) struct WorkerThread {
    stop: CancellationToken,
    /// Answers when the thread has ended, however it did.
    ended: oneshot::Receiver<()>,
}

impl WorkerThread {
    pub(super) fn start(config: &TemporalConfig, task_queue: &str, desk: Arc<dyn Desk>) -> Self {
        let stop = CancellationToken::new();
        let post = Post {
            config: config.clone(),
            task_queue: task_queue.to_owned(),
            desk,
            server: Handle::current(),
            stop: stop.clone(),
        };
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("dispatchers".to_owned());
        let started = thread.spawn(move || {
            post.man();
            drop(end);
        });
        if let Err(error) = started {
            tracing::error!(%error, "Could not start the thread of the dispatchers");
        }
        Self { stop, ended }
    }

    /// Stops, and waits until it has.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // Its end of the channel is dropped with the thread, whether it returned or panicked.
        let _ = self.ended.await;
    }
}

struct Post {
    config: TemporalConfig,
    task_queue: String,
    desk: Arc<dyn Desk>,
    /// Where the desk's connections live.
    server: Handle,
    stop: CancellationToken,
}

impl Post {
    fn man(self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(self.work_on()),
            Err(error) => tracing::error!(%error, "Could not start the runtime of the dispatchers"),
        }
    }

    async fn work_on(&self) {
        let mut failures = 0;
        while !self.stop.is_cancelled() {
            match self.work().await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    if failures == 1 {
                        tracing::warn!(error, "The dispatchers' worker cannot work; trying on");
                    } else {
                        tracing::debug!(error, failures, "The dispatchers' worker still cannot work");
                    }
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(AGAIN.wait(failures.max(1)).max(AGAIN.base)) => {}
            }
        }
    }

    /// Works until it is told to stop, or cannot.
    async fn work(&self) -> Result<(), String> {
        let mut worker = tokio::select! {
            () = self.stop.cancelled() => return Ok(()),
            worker = self.worker() => worker.map_err(|error| error.to_string())?,
        };
        let shut_down = worker.shutdown_handle();
        let mut work = std::pin::pin!(worker.run());
        let ended = tokio::select! {
            ended = &mut work => ended,
            () = self.stop.cancelled() => {
                shut_down();
                // Whoever does not come to an end is left to the leases.
                match tokio::time::timeout(GRACE * 2, work).await {
                    Ok(ended) => ended,
                    Err(_) => return Ok(()),
                }
            }
        };
        ended.map_err(|error| error.to_string())
    }

    async fn worker(&self) -> Result<Worker, Failure> {
        let connection = Connection::connect(self.config.worker_options()?).await?;
        let client = Client::new(
            connection,
            ClientOptions::new(self.config.namespace.clone()).build(),
        )?;
        let build = concat!("stationmaster-", env!("CARGO_PKG_VERSION"));
        let options = WorkerOptions::new(self.task_queue.clone())
            .register_workflow::<DispatcherWorkflow>()?
            .register_activities(Deskwork {
                desk: Arc::clone(&self.desk),
                server: self.server.clone(),
            })
            .deployment_options(WorkerDeploymentOptions::from_build_id(build.to_owned()))
            .sticky_queue_schedule_to_start_timeout(STICKY)
            .workflow_task_poller_behavior(PollerBehavior::SimpleMaximum(2))
            .activity_task_poller_behavior(PollerBehavior::SimpleMaximum(2))
            .graceful_shutdown_period(GRACE)
            .build();
        let runtime = Runtime::from_current_tokio(RuntimeOptions::default())?;
        Ok(Worker::new(&runtime, client, options)?)
    }
}
