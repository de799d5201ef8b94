//! Plans: how much a workspace of each may run at once.

use serde::{Deserialize, Serialize};

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Executions at once, for each workspace of the plan.
    pub max_concurrent: i32,
    /// Its share when there is not enough for all.
    pub weight: f64,
}

/// All plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Plans {
    /// The plans, the smallest first.
    pub items: Vec<Plan>,
}

/// What a plan allows; the limits of its workspaces follow at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanChange {
    /// Executions at once, for each workspace of the plan.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub max_concurrent: i32,
    /// Its share when there is not enough for all; a plan that is there keeps its own, a new one has 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0.000_001, maximum = 1_000_000))]
    pub weight: Option<f64>,
}
