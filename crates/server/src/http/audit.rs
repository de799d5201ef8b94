//! `/v1/audit`: who changed what, and when.

use axum::Json as Answer;
use axum::extract::State as Shared;
use stationmaster_client::wire;
use stationmaster_core::audit::{self, Entry, Filter};
use utoipa_axum::routes;

use super::State;
use super::caller::Caller;
use super::cursor::{self, List};
use super::extract::Query;
use super::problem::Problem;
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().admin(routes!(list))
}

/// Lines of the audit, newest first
#[utoipa::path(get, path = "/v1/audit", operation_id = "list_audit", tag = "audit", params(wire::AuditQuery),
    responses((status = 200, description = "A page of lines", body = wire::Page<wire::AuditEntry>)))]
async fn list(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::AuditQuery>,
) -> Result<Answer<wire::Page<wire::AuditEntry>>, Problem> {
    let list = List::new("audit", &query);
    let limit = cursor::limit(query.limit)?;
    let filter = Filter {
        workspace: caller.may_ask(query.workspace_id)?,
        before: list.position(query.cursor.as_deref(), cursor::number)?,
        actor: query.actor,
        action: query.action,
        subject: query.subject,
        limit: i64::from(limit) + 1,
    };
    let rows = audit::list(&caller.database(&state), &filter).await?;
    Ok(list.page(rows, limit, |entry| entry.id.to_be_bytes().to_vec(), entry))
}

pub(crate) fn entry(entry: Entry) -> wire::AuditEntry {
    wire::AuditEntry {
        id: entry.id,
        at: entry.at,
        actor: entry.actor,
        action: entry.action,
        workspace_id: entry.workspace_id.map(|id| id.0),
        subject: entry.subject,
        detail: entry.detail,
    }
}
