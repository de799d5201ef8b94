//! Workspaces, plans, workflows.

use anyhow::Result;
use serde_json::value::RawValue;
use stationmaster_client::{Error, wire};
use stationmaster_core::catalogue::{self, DefinitionChange, Plan, WorkspaceChange};
use stationmaster_core::id::{DefinitionId, WorkspaceId};
use uuid::Uuid;

use super::{Backend, Listed, cut, place, rows, size, told};
use crate::http::shapes;

impl Backend {
    pub(in crate::command) async fn workspaces(
        &self,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Listed<wire::Workspace>> {
        Listed::read(limit, after, async |limit, after| match self {
            Self::Database(direct) => {
                let after = place(after)?.map(WorkspaceId);
                let found = catalogue::workspaces(&direct.database, after, rows(limit) + 1).await?;
                let found = found.into_iter().map(shapes::workspace).collect();
                Ok(cut(found, limit, |workspace: &wire::Workspace| {
                    workspace.id.to_string()
                }))
            }
            Self::Api(client) => {
                let query = wire::PageQuery {
                    limit: size(limit),
                    cursor: after,
                };
                Ok(told(client.workspaces(&query).await?))
            }
        })
        .await
    }

    pub(in crate::command) async fn workspace(&self, id: Uuid) -> Result<wire::Workspace> {
        match self {
            Self::Database(direct) => {
                let found = catalogue::workspace(&direct.database, WorkspaceId(id)).await?;
                Ok(shapes::workspace(found))
            }
            Self::Api(client) => Ok(client.workspace(id).await?),
        }
    }

    pub(in crate::command) async fn put_workspace(
        &self,
        id: Uuid,
        change: wire::WorkspaceChange,
    ) -> Result<wire::Workspace> {
        match self {
            Self::Database(direct) => {
                let change = WorkspaceChange {
                    name: change.name,
                    plan: change.plan,
                    max_concurrent: change.max_concurrent,
                    paused: change.paused,
                };
                let made = catalogue::put_workspace(&direct.database, WorkspaceId(id), change, None).await?;
                Ok(shapes::workspace(made))
            }
            Self::Api(client) => Ok(client.put_workspace(id, &change, None).await?),
        }
    }

    pub(in crate::command) async fn pause_workspace(
        &self,
        id: Uuid,
        paused: bool,
    ) -> Result<wire::Workspace> {
        match self {
            Self::Database(_) => {
                let change = wire::WorkspaceChange {
                    paused: Some(paused),
                    ..wire::WorkspaceChange::default()
                };
                self.workspace(id).await?;
                self.put_workspace(id, change).await
            }
            Self::Api(client) if paused => Ok(client.pause_workspace(id).await?),
            Self::Api(client) => Ok(client.resume_workspace(id).await?),
        }
    }

    pub(in crate::command) async fn delete_workspace(&self, id: Uuid) -> Result<()> {
        match self {
            Self::Database(direct) => {
                Ok(catalogue::delete_workspace(&direct.database, WorkspaceId(id), None).await?)
            }
            Self::Api(client) => Ok(client.delete_workspace(id).await?),
        }
    }

    pub(in crate::command) async fn plans(&self) -> Result<Vec<wire::Plan>> {
        match self {
            Self::Database(direct) => {
                let plans = catalogue::plans(&direct.database).await?;
                Ok(plans.into_iter().map(shapes::plan).collect())
            }
            Self::Api(client) => Ok(client.plans().await?),
        }
    }

    pub(in crate::command) async fn put_plan(
        &self,
        name: String,
        change: wire::PlanChange,
    ) -> Result<wire::Plan> {
        match self {
            Self::Database(direct) => {
                let plans = catalogue::plans(&direct.database).await?;
                let before = plans.into_iter().find(|plan| plan.name == name);
                let plan = Plan {
                    name,
                    max_concurrent: change.max_concurrent,
                    weight: change.weight.or(before.map(|plan| plan.weight)).unwrap_or(1.0),
                };
                catalogue::put_plan(&direct.database, &plan, None).await?;
                Ok(shapes::plan(plan))
            }
            Self::Api(client) => Ok(client.put_plan(&name, &change, None).await?),
        }
    }

    pub(in crate::command) async fn workflows(
        &self,
        workspace: Option<Uuid>,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Listed<wire::Workflow>> {
        Listed::read(limit, after, async |limit, after| match self {
            Self::Database(direct) => {
                let (workspace, after) = (workspace.map(WorkspaceId), place(after)?.map(DefinitionId));
                let found =
                    catalogue::definitions(&direct.database, workspace, after, rows(limit) + 1).await?;
                let found = found.into_iter().map(shapes::workflow).collect();
                Ok(cut(found, limit, |workflow: &wire::Workflow| {
                    workflow.id.to_string()
                }))
            }
            Self::Api(client) => {
                let query = wire::WorkflowQuery {
                    workspace_id: workspace,
                    limit: size(limit),
                    cursor: after,
                };
                Ok(told(client.workflows(&query).await?))
            }
        })
        .await
    }

    pub(in crate::command) async fn workflow(&self, id: Uuid) -> Result<wire::Workflow> {
        match self {
            Self::Database(direct) => {
                let found = catalogue::definition(&direct.database, DefinitionId(id)).await?;
                Ok(shapes::workflow(found))
            }
            Self::Api(client) => Ok(client.workflow(id).await?),
        }
    }

    /// What a workflow is called; none: it is gone.
    pub(in crate::command) async fn name_of_workflow(&self, id: Uuid) -> Result<Option<String>> {
        match self.workflow(id).await {
            Ok(workflow) => Ok(Some(workflow.name)),
            Err(error) => {
                let gone = matches!(error.downcast_ref(), Some(catalogue::Error::UnknownDefinition(_)))
                    || matches!(error.downcast_ref(), Some(Error::NotFound(_)));
                if gone { Ok(None) } else { Err(error) }
            }
        }
    }

    pub(in crate::command) async fn put_workflow(
        &self,
        id: Uuid,
        change: wire::WorkflowChange,
    ) -> Result<wire::Workflow> {
        match self {
            Self::Database(direct) => {
                let workspace = WorkspaceId(change.workspace_id);
                let change = DefinitionChange {
                    name: change.name,
                    task_queue: change.task_queue,
                    workflow_type: change.workflow_type,
                    max_attempts: change.max_attempts,
                    published_version: change.published_version,
                    paused: change.paused,
                };
                let made =
                    catalogue::put_definition(&direct.database, DefinitionId(id), workspace, change, None)
                        .await?;
                Ok(shapes::workflow(made))
            }
            Self::Api(client) => Ok(client.put_workflow(id, &change, None).await?),
        }
    }

    pub(in crate::command) async fn pause_workflow(&self, id: Uuid, paused: bool) -> Result<wire::Workflow> {
        match self {
            Self::Database(_) => {
                let before = self.workflow(id).await?;
                let change = wire::WorkflowChange {
                    paused: Some(paused),
                    ..wire::WorkflowChange::of(before.workspace_id)
                };
                self.put_workflow(id, change).await
            }
            Self::Api(client) if paused => Ok(client.pause_workflow(id).await?),
            Self::Api(client) => Ok(client.resume_workflow(id).await?),
        }
    }

    pub(in crate::command) async fn delete_workflow(&self, id: Uuid) -> Result<()> {
        match self {
            Self::Database(direct) => {
                Ok(catalogue::delete_definition(&direct.database, DefinitionId(id), None).await?)
            }
            Self::Api(client) => Ok(client.delete_workflow(id).await?),
        }
    }

    pub(in crate::command) async fn add_version(&self, id: Uuid, graph: &str) -> Result<wire::VersionMade> {
        match self {
            Self::Database(direct) => {
                let (version_id, version) =
                    catalogue::add_version(&direct.database, DefinitionId(id), graph).await?;
                Ok(wire::VersionMade {
                    id: version_id.0,
                    version,
                })
            }
            Self::Api(client) => {
                let workflow = RawValue::from_string(graph.trim().to_owned())?;
                Ok(client
                    .add_version(id, &wire::NewVersion { workflow }, None)
                    .await?)
            }
        }
    }
}
