//! `/v1/overview`: the whole at a glance, for pages and charts.

use axum::Json as Answer;
use axum::extract::State as Shared;
use stationmaster_client::wire;
use stationmaster_core::executions::{browse, inspect};
use stationmaster_core::{catalogue, presence};
use utoipa_axum::routes;

use super::State;
use super::caller::Caller;
use super::executions::execution;
use super::extract::Query;
use super::problem::Problem;
use super::routes::Routes;
use super::servers::server;
use super::workspaces::workspace;

/// Workspaces shown at most.
const WORKSPACES: i64 = 200;
/// Executions shown.
const EXECUTIONS: usize = 15;

pub(super) fn routes() -> Routes {
    Routes::new().viewer(routes!(show))
}

/// The whole at a glance; of it, what the token may see
#[utoipa::path(get, path = "/v1/overview", operation_id = "show_overview", tag = "overview", params(wire::OverviewQuery),
    responses((status = 200, description = "Numbers, workspaces, executions and servers", body = wire::Overview)))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::OverviewQuery>,
) -> Result<Answer<wire::Overview>, Problem> {
    let minutes = query.minutes.unwrap_or(60);
    if !(1..=1440).contains(&minutes) {
        return Err(Problem::field("minutes", "1 to 1440"));
    }
    let database = caller.database(&state);
    let overview = inspect::overview(&database).await?;
    let minutes = inspect::minutes(&database, minutes).await?;
    let workspaces = catalogue::workspaces(&database, None, WORKSPACES).await?;
    let newest = browse::Filter {
        limit: EXECUTIONS,
        ..browse::Filter::default()
    };
    let executions = browse::executions(&database, &newest).await?;
    let servers = presence::list(&state.database).await?;
    Ok(Answer(wire::Overview {
        overview: numbers(&overview),
        minutes: minutes.iter().map(minute).collect(),
        workspaces: workspaces.into_iter().map(workspace).collect(),
        executions: executions.rows.into_iter().map(execution).collect(),
        servers: servers.into_iter().map(server).collect(),
        open: state.settings.open,
    }))
}

fn numbers(overview: &inspect::Overview) -> wire::Numbers {
    wire::Numbers {
        waiting: overview.waiting,
        starting: overview.starting,
        running: overview.running,
        completed_last_minute: overview.completed_last_minute,
        failed_last_minute: overview.failed_last_minute,
        servers: overview.servers,
        engine_up: overview.engine_up,
    }
}

fn minute(minute: &inspect::Minute) -> wire::Minute {
    wire::Minute {
        at: minute.at,
        completed: minute.completed,
        failed: minute.failed,
    }
}
