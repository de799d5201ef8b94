//! `/v1/history`: what happened in each minute, for charts.

use axum::Json as Answer;
use jiff::{SignedDuration, Timestamp};
use stationmaster_client::wire;
use stationmaster_core::history::{self, Chart};
use stationmaster_core::id::ServerId;
use stationmaster_core::presence;
use utoipa_axum::routes;

use super::caller::Visit;
use super::extract::Query;
use super::names;
use super::problem::{Problem, Reply, Result};
use super::routes::{Routes, long};
use crate::config::duration;

/// Points in an answer at most.
const POINTS: i64 = 1_500;
/// Points where nobody says how much time one stands for.
const PLAIN: i64 = 300;
/// Steps that are chosen then, in minutes.
const STEPS: [i64; 8] = [1, 5, 15, 60, 180, 360, 720, 1440];

pub(super) fn routes() -> Routes {
    Routes::of("history").viewer(long(routes!(show)))
}

/// What happened in each minute, or longer step, for charts; of it, what the token may see
///
/// A minute is counted a few seconds after its end. Of each minute the hundred workspaces and workflows with the most are kept, and
/// everything together.
#[utoipa::path(get, path = "/v1/history", operation_id = "show_history", tag = "overview", params(wire::HistoryQuery),
    responses((status = 200, description = "The history, point by point", body = wire::HistoryChart),
              (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    Query(query): Query<wire::HistoryQuery>,
) -> Reply<wire::HistoryChart> {
    let (workspace, workflow) = names::both(
        &database,
        &caller,
        query.workspace.as_ref(),
        query.workflow.as_ref(),
    )
    .await?;
    let server = match &query.server {
        None => None,
        Some(_) if workspace.is_some() || workflow.is_some() => {
            return Err(Problem::field(
                "server",
                "it goes with neither `workspace` nor `workflow`",
            ));
        }
        Some(server) => {
            caller.sees_all()?;
            let found = presence::find(&state.database, server).await?;
            let missing =
                || Problem::not_found(format!("there is no server {server}, and none is on record"));
            Some(ServerId(found.ok_or_else(missing)?.id))
        }
    };
    let to = query.to.unwrap_or_else(Timestamp::now);
    let from = query
        .from
        .map_or_else(|| to.checked_sub(SignedDuration::from_hours(1)), Ok);
    let from = from.map_err(|_| Problem::field("to", "too early"))?;
    if from >= to {
        return Err(Problem::field("from", "it must lie before `to`"));
    }
    let step = step(query.step.as_deref(), to.duration_since(from))?;
    let chart = Chart {
        from: at_step(from, step, 0)?,
        to: at_step(to, step, step - 1)?,
        step: SignedDuration::from_secs(step),
        workspace,
        workflow,
        server,
    };
    Ok(Answer(history::chart(&database, chart).await?))
}

/// The multiple of the step that lies before a time, or after it when it is `more` seconds later.
fn at_step(time: Timestamp, step: i64, more: i64) -> Result<Timestamp> {
    let seconds = time
        .as_second()
        .saturating_add(more + i64::from(more > 0 && time.subsec_nanosecond() > 0));
    Timestamp::from_second(seconds.div_euclid(step) * step).map_err(|_| Problem::field("to", "out of range"))
}

/// In seconds.
fn step(asked: Option<&str>, span: SignedDuration) -> Result<i64> {
    let Some(asked) = asked else {
        let fits = |minutes: &&i64| span.as_secs() / (**minutes * 60) < PLAIN;
        return match STEPS.iter().find(fits) {
            Some(minutes) => Ok(minutes * 60),
            None => Err(Problem::field("from", "at most 300 days, or say a `step`")),
        };
    };
    let step = duration(asked)
        .map_err(|words| Problem::field("step", words))?
        .as_secs();
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    if step < 60 || step % 60 != 0 || step > 31 * 86_400 {
        return Err(Problem::field("step", "whole minutes, from 1m to 31d"));
    }
    if span.as_secs() / step >= POINTS {
        return Err(Problem::field(
            "step",
            format!("too fine: at most {POINTS} points"),
        ));
    }
    Ok(step)
}
