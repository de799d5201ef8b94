//! What a doctor sees of everything that Stationmaster stands on.

use serde::{Deserialize, Serialize};

words! {
    /// How bad it is, from nothing to bad.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Severity {
        /// In order.
        Ok = "ok",
        /// Good to know.
        Note = "note",
        /// Will hurt some day, or hurts a little.
        Warning = "warning",
        /// Does not work like this.
        Problem = "problem",
    }
}

/// What a check saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// Which check; the name does not change.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was seen.
    pub seen: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// What all checks saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Examination {
    /// How bad the worst is.
    pub worst: Severity,
    /// What was seen.
    pub findings: Vec<Finding>,
}
