//! `/v1/overview`: the whole at a glance, for pages and charts.

use axum::Json as Answer;
use stationmaster_client::wire;
use stationmaster_core::alarms::inspect::{self as alarms, Notable};
use stationmaster_core::executions::{browse, inspect, strays};
use stationmaster_core::{catalogue, failures, presence};
use utoipa_axum::routes;

use super::caller::Visit;
use super::extract::Query;
use super::problem::{Problem, Reply};
use super::routes::{Routes, long};

/// Workspaces shown at most.
const WORKSPACES: i64 = 200;
/// Groups of failures shown at most.
const GROUPS: usize = 20;
/// Alarms shown at most, of those that come and of those that fail.
const ALARMS: i64 = 20;
/// Paused workflows shown at most.
const HELD: i64 = 20;
/// Silent targets shown at most.
const BREAKERS: i64 = 20;
/// Strays shown at most.
const STRAYS: i64 = 20;
/// Executions shown.
const EXECUTIONS: usize = 15;

pub(super) fn routes() -> Routes {
    Routes::of("overview").viewer(long(routes!(show)))
}

/// The whole at a glance; of it, what the token may see
#[utoipa::path(get, path = "/v1/overview", operation_id = "show_overview", tag = "overview", params(wire::OverviewQuery),
    responses((status = 200, description = "Numbers, workspaces, executions and servers", body = wire::Overview)))]
async fn show(
    Visit { state, database, .. }: Visit,
    Query(query): Query<wire::OverviewQuery>,
) -> Reply<wire::Overview> {
    let minutes = query.minutes.unwrap_or(60);
    if !(1..=1440).contains(&minutes) {
        return Err(Problem::field("minutes", "1 to 1440"));
    }
    let newest = browse::Filter {
        limit: EXECUTIONS,
        ..browse::Filter::default()
    };
    let mut groups = failures::groups(&database, &failures::Filter::default()).await?;
    groups.truncate(GROUPS);
    Ok(Answer(wire::Overview {
        overview: inspect::overview(&database).await?,
        minutes: inspect::minutes(&database, minutes, inspect::COUNTED).await?,
        failures: groups,
        workspaces: catalogue::busiest_workspaces(&database, WORKSPACES).await?,
        coming: alarms::notable(&database, Notable::Coming, ALARMS).await?,
        failing: alarms::notable(&database, Notable::Failing, ALARMS).await?,
        breakers: alarms::silent_targets(&database, BREAKERS).await?,
        held: inspect::held(&database, HELD).await?,
        strays: strays::list(&database, None, None, STRAYS).await?,
        executions: browse::executions(&database, &newest).await?.rows,
        servers: presence::list(&database, false).await?,
        lost: presence::lost_lately(&database).await?,
        open: state.settings.open,
    }))
}
