//! Which Temporal the connection must lead to, and the proof that it does.
//!
//! An address is no identity: it may be mistyped, moved to another cluster, or lead to one that was emptied and set up anew. A link
//! that is bound proves at every new connection that the namespace behind it is the one it is bound to, before anything else is sent
//! there; a connection leads to no other as long as it lasts (see `transport`). Where a proxy answers in the place of Temporal, what
//! is behind it may change all the same, so the proof is repeated at most [`FRESH`] before any request. While it is not known which one
//! it should be, nothing is sent at all.

use std::time::Duration;

use parking_lot::Mutex;
use stationmaster_core::engine::Identity;
use temporalio_client::tonic::{Code, Request, Status};
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeNamespaceRequest, GetClusterInfoRequest,
};
use tokio::time::{Instant, timeout_at};

use crate::transport::Connection;

/// How old a proof may be.
const FRESH: Duration = Duration::from_secs(1);
/// How long a connection that was proven before may take to prove itself again. One that is only slow is no other: what is sent
/// on it will be in doubt, as ever.
const PATIENCE: Duration = Duration::from_secs(1);

const HELD: &str = "it is not known yet whether this is the Temporal on record";

#[derive(Debug, Clone)]
enum Bound {
    /// Whatever is there.
    Free,
    /// Nothing may be sent.
    Held,
    To(Identity),
}

/// See the module.
pub(crate) struct Bond {
    bound: Mutex<Bound>,
    /// Which connection has proven itself, and when.
    proven: tokio::sync::Mutex<Option<(u64, Instant)>>,
}

impl Bond {
    pub(crate) fn free() -> Self {
        Self {
            bound: Mutex::new(Bound::Free),
            proven: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn bind_to(&self, identity: Option<&Identity>) {
        *self.bound.lock() = identity.map_or(Bound::Held, |identity| Bound::To(identity.clone()));
    }

    /// May anything be sent at all?
    pub(crate) fn allows(&self) -> Result<(), String> {
        match *self.bound.lock() {
            Bound::Held => Err(HELD.to_owned()),
            Bound::Free | Bound::To(_) => Ok(()),
        }
    }

    /// May something be sent on this connection? The words say why not.
    pub(crate) async fn prove(
        &self,
        number: u64,
        connection: &Connection,
        place: &Place,
        ends_at: Instant,
    ) -> Result<(), String> {
        let identity = match &*self.bound.lock() {
            Bound::Free => return Ok(()),
            Bound::Held => return Err(HELD.to_owned()),
            Bound::To(identity) => identity.clone(),
        };
        let late = || "proving which Temporal this is took too long".to_owned();
        let mut proven = timeout_at(ends_at, self.proven.lock())
            .await
            .map_err(|_| late())?;
        let before = proven.filter(|(connection, _)| *connection == number);
        if before.is_some_and(|(_, at)| at.elapsed() < FRESH) {
            return Ok(());
        }
        let patience = before.map_or(ends_at, |_| ends_at.min(Instant::now() + PATIENCE));
        match timeout_at(patience, place.identity(connection)).await {
            Ok(Ok(found)) if found.key == identity.key => {
                *proven = Some((number, Instant::now()));
                Ok(())
            }
            Ok(Ok(found)) => {
                *proven = None;
                Err(format!(
                    "this is another Temporal than the one on record: that is {}, and this is {}",
                    identity.place, found.place
                ))
            }
            // It is there, under load; it was the right one a moment ago.
            Ok(Err(status)) if before.is_some() && status.code() == Code::ResourceExhausted => Ok(()),
            // No word of who it is: only a connection that was proven before may be used.
            Ok(Err(status)) if before.is_none() || std::error::Error::source(&status).is_none() => {
                Err(format!("{:?}: {}", status.code(), status.message()))
            }
            Err(_) if before.is_none() => Err(late()),
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    /// What was heard on the connection must have come from the Temporal that it is bound to: proven anew, whatever was proven before.
    pub(crate) async fn forget_proof(&self) {
        *self.proven.lock().await = None;
    }
}

/// Where a namespace is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) namespace: String,
}

impl Place {
    /// Who is behind this connection.
    pub(crate) async fn identity(&self, connection: &Connection) -> Result<Identity, Status> {
        let message = DescribeNamespaceRequest {
            namespace: self.namespace.clone(),
            ..DescribeNamespaceRequest::default()
        };
        let mut service = connection.service();
        let described = service
            .describe_namespace(Request::new(message))
            .await?
            .into_inner();
        let namespace_id = described.namespace_info.map(|info| info.id).unwrap_or_default();
        // A namespace that several clusters share is the same in each of them, and moves between them.
        let cluster_id = if described.is_global_namespace {
            "any".to_owned()
        } else {
            match service
                .get_cluster_info(Request::new(GetClusterInfoRequest {}))
                .await
            {
                Ok(info) => info.into_inner().cluster_id,
                // Not everybody may ask; the id of the namespace is unique by itself.
                Err(status) if matches!(status.code(), Code::PermissionDenied | Code::Unimplemented) => {
                    "any".to_owned()
                }
                Err(status) => return Err(status),
            }
        };
        Ok(Identity {
            key: format!("{cluster_id}/{namespace_id}"),
            place: format!(
                "namespace {} at {} (namespace id {namespace_id}, cluster id {cluster_id})",
                self.namespace, self.address
            ),
        })
    }
}
