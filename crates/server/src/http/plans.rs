//! `/v1/plans`: how much a workspace of each may run at once.

use axum::Json as Answer;
use serde::Serialize;
use stationmaster_client::wire;
use stationmaster_core::catalogue;
use utoipa_axum::routes;

use super::caller::Visit;
use super::etag::{Changeable, Expected, Tagged};
use super::extract::{Json, Path};
use super::problem::{Problem, Reply, Result, Wrong};
use super::routes::{Routes, conditional};

pub(super) fn routes() -> Routes {
    Routes::of("plan")
        .viewer(routes!(list))
        .admin(conditional(routes!(put)))
}

/// The plans there are
#[utoipa::path(get, path = "/v1/plans", operation_id = "list_plans", tag = "plans",
    responses((status = 200, description = "All plans", body = wire::Plans)))]
async fn list(Visit { database, .. }: Visit) -> Reply<wire::Plans> {
    let items = catalogue::plans(&database).await?;
    Ok(Answer(wire::Plans { items }))
}

/// Make a plan or change it; the limits of its workspaces follow at once. For tokens that are for all workspaces
#[utoipa::path(put, path = "/v1/plans/{name}", operation_id = "put_plan", tag = "plans",
    params(("name" = String, Path, description = "The plan", min_length = 1, max_length = 100, pattern = "^[A-Za-z0-9_.-]+$")),
    request_body = wire::PlanChange,
    responses((status = 200, description = "The plan as it is now", body = wire::Plan)))]
async fn put(
    Visit { caller, database, .. }: Visit,
    Path(name): Path<String>,
    expected: Expected,
    Json(change): Json<wire::PlanChange>,
) -> Result<Tagged<wire::Plan>> {
    caller.sees_all()?;
    check(&name, &change)?;
    let plans = catalogue::plans(&database).await?;
    let before = plans
        .into_iter()
        .find(|plan| plan.name.eq_ignore_ascii_case(&name));
    let kept = before.as_ref().map(|plan| plan.weight);
    let weight = change.weight.or(kept).unwrap_or(1.0);
    let made = wire::Plan {
        // In whatever case it is asked for, it is the same plan.
        name: before.map_or(name, |plan| plan.name),
        max_concurrent: change.max_concurrent,
        weight,
    };
    catalogue::put_plan(&database, &made, expected.of()).await?;
    Ok(Tagged(made))
}

pub(super) fn check(name: &str, change: &wire::PlanChange) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let mut wrong = Wrong::default();
    let mut field = |field: &str, words: &str| {
        wrong.see::<(), _>(Err(Problem::field(field, words)));
    };
    if !(1..=100).contains(&name.len()) || !name.chars().all(plain) {
        field("name", "1 to 100 letters, digits, dots, underscores and hyphens");
    }
    if change.max_concurrent < 0 {
        field("/max_concurrent", "0 or more");
    }
    if change
        .weight
        .is_some_and(|weight| !(0.000_001..=1_000_000.0).contains(&weight))
    {
        field("/weight", "from 0.000001 to 1000000");
    }
    wrong.told()
}

impl Changeable for wire::Plan {
    fn changeable(&self) -> impl Serialize {
        (self.max_concurrent, self.weight)
    }
}
