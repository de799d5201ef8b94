//! Failures: what needs a person.

use crate::Client;
use crate::error::Result;
use crate::wire::{BulkAnswer, BulkFailures, Failure, FailureGroup, FailureQuery, Page, PageQuery};

impl Client {
    /// What needs a person, by what it has in common.
    pub async fn failures(&self, query: &FailureQuery) -> Result<Page<FailureGroup>> {
        self.read(&["failures"], query).await
    }

    /// One group, by its id or the beginning of it.
    pub async fn failure_group(&self, group: &str) -> Result<FailureGroup> {
        self.get(&["failures", group]).send().await
    }

    /// The failures of a group, newest first.
    pub async fn failures_of(&self, group: &str, query: &PageQuery) -> Result<Page<Failure>> {
        self.read(&["failures", group, "members"], query).await
    }

    /// Tries again what failed and matches. Once for its key; without one, once for this call.
    pub async fn retry_failures(&self, which: &BulkFailures, key: Option<&str>) -> Result<BulkAnswer> {
        self.ask_once(&["failures", "retry"], key, which).await
    }

    /// Sets failures aside. Once for its key; without one, once for this call.
    pub async fn set_failures_aside(&self, which: &BulkFailures, key: Option<&str>) -> Result<BulkAnswer> {
        self.ask_once(&["failures", "set-aside"], key, which).await
    }

    /// Cancels what still waits of the workflow that a group is about. Once for its key; without one, once for this call.
    pub async fn cancel_failing(&self, which: &BulkFailures, key: Option<&str>) -> Result<BulkAnswer> {
        self.ask_once(&["failures", "cancel"], key, which).await
    }
}
