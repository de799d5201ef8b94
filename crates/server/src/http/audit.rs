//! `/v1/audit`: who changed what, and when.

use stationmaster_client::wire;
use stationmaster_core::audit;
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::extract::Query;
use super::names;
use super::problem::Reply;
use super::routes::{Routes, long};

pub(super) fn routes() -> Routes {
    Routes::of("audit").admin(long(routes!(list)))
}

/// Lines of the audit, newest first
#[utoipa::path(get, path = "/v1/audit", operation_id = "list_audit", tag = "audit", params(wire::AuditQuery),
    responses((status = 200, description = "A page of lines", body = wire::Page<wire::AuditEntry>)))]
async fn list(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::AuditQuery>,
) -> Reply<wire::Page<wire::AuditEntry>> {
    let list = List::new("audit", &query)?;
    let workspace = names::asked(&database, &caller, query.workspace_id.as_ref()).await?;
    let page = audit::list(&database, &query, workspace, list.position()?, list.limit()).await?;
    Ok(list.ending_at(page.rows, page.next))
}
