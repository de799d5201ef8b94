//! A server with something on it, and somebody who looks at it.

use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Complete, CompleteStatus, Enqueue, Execution, ItemStatus, WorkflowChange, WorkspaceChange,
};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::browser::{Browser, Tab};
use crate::scene::Scene;
use crate::support::eventually;

/// Text that would do something if it were not shown as text.
pub(crate) const HOSTILE: &str = r#""><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"#;

/// A server, a browser, and a client that may do everything.
pub(crate) struct Visit {
    pub(crate) scene: Scene,
    pub(crate) browser: Browser,
    pub(crate) client: Client,
}

/// What a workspace and its workflow are called and are.
pub(crate) struct Place {
    pub(crate) workspace: Uuid,
    pub(crate) workflow: Uuid,
}

impl Visit {
    pub(crate) async fn new() -> Self {
        Self::on(Scene::new().await).await
    }

    pub(crate) async fn on(scene: Scene) -> Self {
        let client = scene.admin().await;
        Self {
            client,
            scene,
            browser: Browser::start(),
        }
    }

    /// A page at which nobody has signed in.
    pub(crate) async fn stranger(&self) -> Tab {
        self.browser.tab(&self.scene.url("")).await
    }

    /// A page of somebody who has signed in with a token of this role; with a workspace, only for it.
    pub(crate) async fn person(&self, role: Role, workspace: Option<Uuid>) -> Tab {
        let tab = self.stranger().await;
        tab.open("/").await;
        self.sign_in(&tab, role, workspace).await;
        tab
    }

    pub(crate) async fn sign_in(&self, tab: &Tab, role: Role, workspace: Option<Uuid>) {
        let token = self.scene.token(role, workspace).await;
        tab.fill("token", &token).await;
        tab.press("Sign in").await;
    }

    /// A workspace with this limit and a workflow `report` that runs this graph.
    pub(crate) async fn place(&self, name: &str, limit: i32, graph: &str) -> Place {
        let change = WorkspaceChange {
            name: Some(name.to_owned()),
            max_concurrent: Some(Some(limit)),
            ..WorkspaceChange::default()
        };
        let workspace = self
            .client
            .put_workspace(Uuid::now_v7(), &change, None)
            .await
            .unwrap()
            .id;
        let change = WorkflowChange {
            name: Some("report".to_owned()),
            ..WorkflowChange::of(workspace)
        };
        let workflow = self
            .client
            .put_workflow(Uuid::now_v7(), &change, None)
            .await
            .unwrap()
            .id;
        let version = stationmaster_client::wire::NewVersion {
            workflow: serde_json::value::RawValue::from_string(graph.to_owned()).unwrap(),
        };
        self.client.add_version(workflow, &version, None).await.unwrap();
        Place { workspace, workflow }
    }

    pub(crate) async fn item(&self, place: &Place, input: &str) -> Uuid {
        let request = Enqueue {
            input: Some(serde_json::value::RawValue::from_string(input.to_owned()).unwrap()),
            ..Enqueue::new(place.workspace, place.workflow)
        };
        self.client.enqueue(&request).await.unwrap().id
    }

    pub(crate) async fn running(&self, item: Uuid) -> Execution {
        eventually("it runs", async || {
            self.client.queue_item(item).await.unwrap().item.status == ItemStatus::Dispatched
        })
        .await;
        let id = self
            .client
            .queue_item(item)
            .await
            .unwrap()
            .item
            .execution_id
            .unwrap();
        self.client.execution(id).await.unwrap()
    }

    /// An item that ran and ended with these words.
    pub(crate) async fn failed(&self, place: &Place, input: &str, words: &str) -> Uuid {
        let item = self.item(place, input).await;
        let execution = self.running(item).await;
        let end = Complete {
            status: CompleteStatus::Failed,
            output: None,
            force: true,
            error: Some(serde_json::value::to_raw_value(&json!({ "message": words })).unwrap()),
        };
        self.client.complete(execution.id, &end).await.unwrap();
        item
    }

    pub(crate) async fn status(&self, item: Uuid) -> ItemStatus {
        self.client.queue_item(item).await.unwrap().item.status
    }
}
