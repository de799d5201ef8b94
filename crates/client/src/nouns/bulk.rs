//! The same done to everything that matches: at once, as much as a call may; or by the servers, while nobody waits for it.

use serde::Serialize;
use uuid::Uuid;

use crate::Client;
use crate::call::PREFER;
use crate::error::Result;
use crate::wire::{BulkAnswer, Operation, OperationKind, OperationQuery, Page};

impl Client {
    /// Makes one call of it: a dry run, or as much as a call may do. Once for its key; without one, once for this call.
    pub async fn carry_out(
        &self,
        kind: OperationKind,
        request: &(impl Serialize + Sync),
        key: Option<&str>,
    ) -> Result<BulkAnswer> {
        self.ask_once(&kind.path(), key, request).await
    }

    /// Lets the servers do it. Once for its key; without one, once for this call. A dry run is no operation: it fails.
    pub async fn begin(
        &self,
        kind: OperationKind,
        request: &(impl Serialize + Sync),
        key: Option<&str>,
    ) -> Result<Operation> {
        let call = self.post(&kind.path()).once_for(key);
        call.header(PREFER, Some("respond-async"))
            .json(request)
            .send()
            .await
    }

    /// Operations, newest first.
    pub async fn operations(&self, query: &OperationQuery) -> Result<Page<Operation>> {
        self.read(&["operations"], query).await
    }

    /// One operation, by its id or the beginning of it.
    pub async fn operation(&self, id: &str) -> Result<Operation> {
        self.get(&["operations", id]).send().await
    }

    /// Ends an operation; what it has done stays done.
    pub async fn cancel_operation(&self, id: Uuid) -> Result<Operation> {
        let path = ["operations", &id.to_string(), "cancel"];
        self.post(&path).send().await
    }
}
