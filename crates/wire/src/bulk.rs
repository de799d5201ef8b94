//! What comes of an operation on everything that matches a filter.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What came of a bulk operation, or of the part of it that one call does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkAnswer {
    /// Of a dry run, how many match, counted up to 100,000 or for as long as a call may take; otherwise how many were changed.
    pub items: u64,
    /// There is more. Of a dry run: not all were counted. Otherwise: call again, with `next` as `after`.
    pub more: bool,
    /// Where the next call goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When this call looked, by the database's clock. Whoever acts on a dry run gives it back as the upper end of the filter's time:
    /// then nothing is changed that the dry run did not count.
    pub as_of: Timestamp,
    /// Of a dry run, a few of those that match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sample: Vec<String>,
    /// Nothing was changed.
    pub dry_run: bool,
}
