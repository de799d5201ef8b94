//! Workspaces, plans, workflows and their versions.

use reqwest::Method;
use serde::Serialize;

use crate::Client;
use crate::error::Result;
use crate::wire::{
    Backlog, BacklogOfWorkflow, GraphChecked, NewVersion, Page, PageQuery, Plan, PlanChange, Plans,
    Reference, Version, VersionMade, Workflow, WorkflowChange, WorkflowQuery, Workspace, WorkspaceChange,
};

impl Client {
    /// Workspaces, in the order of their ids.
    pub async fn workspaces(&self, query: &PageQuery) -> Result<Page<Workspace>> {
        self.read(&["workspaces"], query).await
    }

    /// One workspace.
    pub async fn workspace(&self, which: impl Into<Reference>) -> Result<Workspace> {
        self.get(&["workspaces", &which.into().to_string()]).send().await
    }

    /// What waits in a workspace, by workflow.
    pub async fn backlog(&self, which: impl Into<Reference>) -> Result<Vec<BacklogOfWorkflow>> {
        let backlog: Backlog = self
            .get(&["workspaces", &which.into().to_string(), "backlog"])
            .send()
            .await?;
        Ok(backlog.items)
    }

    /// Makes a workspace or changes it; with a tag, only if it is still the one that was seen.
    pub async fn put_workspace(
        &self,
        which: impl Into<Reference>,
        change: &WorkspaceChange,
        if_match: Option<&str>,
    ) -> Result<Workspace> {
        self.change(
            Method::PUT,
            &["workspaces", &which.into().to_string()],
            change,
            if_match,
        )
        .await
    }

    /// Deletes a workspace and its workflows.
    pub async fn delete_workspace(&self, which: impl Into<Reference>) -> Result<()> {
        self.remove(&["workspaces", &which.into().to_string()]).await
    }

    /// Starts nothing more for a workspace.
    pub async fn pause_workspace(&self, which: impl Into<Reference>) -> Result<Workspace> {
        self.post(&["workspaces", &which.into().to_string(), "pause"])
            .send()
            .await
    }

    /// Starts again.
    pub async fn resume_workspace(&self, which: impl Into<Reference>) -> Result<Workspace> {
        self.post(&["workspaces", &which.into().to_string(), "resume"])
            .send()
            .await
    }

    /// The plans there are.
    pub async fn plans(&self) -> Result<Vec<Plan>> {
        let plans: Plans = self.get(&["plans"]).send().await?;
        Ok(plans.items)
    }

    /// Makes a plan or changes it.
    pub async fn put_plan(&self, name: &str, change: &PlanChange, if_match: Option<&str>) -> Result<Plan> {
        self.change(Method::PUT, &["plans", name], change, if_match).await
    }

    /// Workflows, in the order of their ids.
    pub async fn workflows(&self, query: &WorkflowQuery) -> Result<Page<Workflow>> {
        self.read(&["workflows"], query).await
    }

    /// One workflow.
    pub async fn workflow(&self, which: impl Into<Reference>) -> Result<Workflow> {
        self.get(&["workflows", &which.into().to_string()]).send().await
    }

    /// Makes a workflow or changes it; with a tag, only if it is still the one that was seen.
    pub async fn put_workflow<Id: Serialize + Sync>(
        &self,
        which: impl Into<Reference>,
        change: &WorkflowChange<Id>,
        if_match: Option<&str>,
    ) -> Result<Workflow> {
        self.change(
            Method::PUT,
            &["workflows", &which.into().to_string()],
            change,
            if_match,
        )
        .await
    }

    /// Deletes a workflow.
    pub async fn delete_workflow(&self, which: impl Into<Reference>) -> Result<()> {
        self.remove(&["workflows", &which.into().to_string()]).await
    }

    /// Starts nothing more of a workflow.
    pub async fn pause_workflow(&self, which: impl Into<Reference>) -> Result<Workflow> {
        self.post(&["workflows", &which.into().to_string(), "pause"])
            .send()
            .await
    }

    /// Starts again.
    pub async fn resume_workflow(&self, which: impl Into<Reference>) -> Result<Workflow> {
        self.post(&["workflows", &which.into().to_string(), "resume"])
            .send()
            .await
    }

    /// Asks whether a graph could be a version of a workflow. Nothing is made.
    pub async fn check_graph(&self, version: &NewVersion) -> Result<GraphChecked> {
        self.post(&["graphs", "check"]).json(version).send().await
    }

    /// Adds a version, once for its key; without one, once for this call.
    pub async fn add_version(
        &self,
        which: impl Into<Reference>,
        version: &NewVersion,
        key: Option<&str>,
    ) -> Result<VersionMade> {
        self.ask_once(
            &["workflows", &which.into().to_string(), "versions"],
            key,
            version,
        )
        .await
    }

    /// The versions of a workflow, newest first.
    pub async fn versions(&self, which: impl Into<Reference>, query: &PageQuery) -> Result<Page<Version>> {
        self.read(&["workflows", &which.into().to_string(), "versions"], query)
            .await
    }
}
