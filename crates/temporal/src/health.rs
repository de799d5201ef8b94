//! What can be seen of a cluster from outside: whether it answers, how long it remembers, and what its clock says.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use stationmaster_core::id::ExecutionId;
use temporalio_client::grpc::WorkflowService;
use temporalio_common::protos::temporal::api::workflowservice::v1::GetSystemInfoRequest;
use tokio::time::Instant;

use crate::engine::TemporalEngine;

/// A cluster and our namespace of it.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The version of the server.
    pub version: String,
    /// How long closed runs are remembered; none: it was not told.
    pub retention: Option<Duration>,
}

impl TemporalEngine {
    /// Looks at the cluster; the words of an error say why there is nothing to see.
    pub fn look(&self, patience: Duration) -> BoxFuture<'_, Result<Cluster, String>> {
        async move {
            let ends_at = Instant::now() + patience;
            let rpc = WorkflowService::get_system_info;
            let info = self.link.call(ends_at, GetSystemInfoRequest {}, rpc).await;
            let version = info.map_err(|error| error.to_string())?.server_version;
            let namespace = self.describe_namespace(ends_at).await;
            let namespace = namespace.map_err(|error| error.to_string())?;
            let retention = namespace
                .config
                .and_then(|config| config.workflow_execution_retention_ttl)
                .and_then(|time| Duration::try_from(time).ok());
            Ok(Cluster { version, retention })
        }
        .boxed()
    }

    /// When the cluster says that a run began; none: it does not know it.
    pub fn began_at(
        &self,
        execution: ExecutionId,
        patience: Duration,
    ) -> BoxFuture<'_, Result<Option<Timestamp>, String>> {
        async move {
            let (id, ends_at) = (execution.workflow_id(), Instant::now() + patience);
            let info = self.newest_run(&id, ends_at).await;
            let info = info.map_err(|error| error.to_string())?;
            Ok(info
                .and_then(|info| info.start_time)
                .and_then(|time| Timestamp::new(time.seconds, time.nanos).ok()))
        }
        .boxed()
    }
}
