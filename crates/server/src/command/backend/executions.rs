//! Executions.

use anyhow::Result;
use stationmaster_client::wire;
use stationmaster_core::executions::operate::{self, Completion};
use stationmaster_core::executions::{browse, inspect};
use stationmaster_core::id::{DefinitionId, ExecutionId, WorkspaceId};
use uuid::Uuid;

use super::super::Context;
use super::{Backend, Listed, place, size, told};
use crate::http::shapes;

impl Backend {
    /// Executions that match; the limit and the cursor of the query are not looked at.
    pub(in crate::command) async fn executions(
        &self,
        query: &wire::ExecutionQuery,
        limit: usize,
        before: Option<&str>,
    ) -> Result<Listed<wire::Execution>> {
        Listed::read(limit, before, async |limit, before| match self {
            Self::Database(direct) => {
                let filter = browse::Filter {
                    workspace: query.workspace_id.map(WorkspaceId),
                    definition: query.workflow_definition_id.map(DefinitionId),
                    status: query.status.map(shapes::Translate::translate),
                    after: query.completed_after,
                    before: query.completed_before,
                    text: query.search.clone(),
                    below: place(before)?,
                    limit,
                };
                let page = browse::executions(&direct.database, &filter).await?;
                let found = page.rows.into_iter().map(shapes::execution).collect();
                Ok((found, page.next.map(|id| id.to_string())))
            }
            Self::Api(client) => {
                let query = wire::ExecutionQuery {
                    limit: size(limit),
                    cursor: before,
                    ..query.clone()
                };
                Ok(told(client.executions(&query).await?))
            }
        })
        .await
    }

    pub(in crate::command) async fn execution(&self, id: Uuid) -> Result<wire::Execution> {
        match self {
            Self::Database(direct) => {
                let found = inspect::execution(&direct.database, ExecutionId(id)).await?;
                Ok(shapes::execution(found.ok_or(operate::Error::NotFound(id))?))
            }
            Self::Api(client) => Ok(client.execution(id).await?),
        }
    }

    pub(in crate::command) async fn complete(&self, id: Uuid, end: wire::Complete) -> Result<()> {
        match self {
            Self::Database(direct) => {
                let completion = Completion {
                    status: shapes::Translate::translate(end.status),
                    output: end.output,
                    error: end.error,
                };
                let actor = Context::actor();
                Ok(operate::complete(&direct.database, ExecutionId(id), completion, &actor).await?)
            }
            Self::Api(client) => Ok(client.complete(id, &end).await.map(drop)?),
        }
    }
}
