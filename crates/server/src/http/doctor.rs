//! `/v1/doctor`: what this server sees of everything that it stands on.

use axum::Json as Answer;
use stationmaster_client::wire;
use utoipa_axum::routes;

use super::caller::Visit;
use super::problem::Reply;
use super::routes::{Routes, long};
use crate::doctor;

/// Where it is asked for.
pub(super) const PATH: &str = "/v1/doctor";

pub(super) fn routes() -> Routes {
    Routes::of("examination").operator(long(routes!(examine)))
}

/// Look at the database, the engine, the servers and the work, and say what is not in order and what to do
///
/// For tokens that are for all workspaces. It takes up to five seconds; one examination is made at a time.
#[utoipa::path(get, path = "/v1/doctor", operation_id = "examine", tag = "doctor",
    responses((status = 200, description = "What was seen", body = wire::Examination)))]
async fn examine(Visit { state, caller, .. }: Visit) -> Reply<wire::Examination> {
    caller.sees_all()?;
    let _alone = state.examining.lock().await;
    Ok(Answer(doctor::examine(&state.config, &caller.actor).await))
}
