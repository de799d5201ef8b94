//! The audit: every change leaves a line with its actor, whichever way it was made.

use stationmaster_client::wire::{
    AuditQuery, Cancel, Enqueue, PlanChange, QueueItemChange, WorkflowChange, WorkspaceChange,
};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene};
use crate::support::command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_by_http_is_written_down_under_its_token() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let client = scene.client(&token);
    let own = client.own_token().await.unwrap();
    let actor = format!("token:{}:{}", own.name, own.id);
    let (workspace, workflow) = (Uuid::now_v7(), Uuid::now_v7());
    client
        .put_workspace(workspace, &WorkspaceChange::default(), None)
        .await
        .unwrap();
    let change = WorkspaceChange {
        max_concurrent: Some(Some(0)),
        ..WorkspaceChange::default()
    };
    client.put_workspace(workspace, &change, None).await.unwrap();
    let change = WorkflowChange {
        run_timeout: None,
        workspace_id: workspace,
        name: Some("nightly".to_owned()),
        task_queue: None,
        workflow_type: None,
        max_attempts: None,
        published_version: None,
        paused: None,
    };
    client.put_workflow(workflow, &change, None).await.unwrap();
    let graph = serde_json::value::RawValue::from_string(ENDLESS.to_owned()).unwrap();
    let version = stationmaster_client::wire::NewVersion { workflow: graph };
    client.add_version(workflow, &version, None).await.unwrap();
    let plan = PlanChange {
        max_concurrent: 9,
        weight: None,
    };
    client.put_plan("PRO", &plan, None).await.unwrap();
    let item = client
        .enqueue(&Enqueue::new(workspace, workflow))
        .await
        .unwrap()
        .id;
    client
        .change_queue_item(item, &QueueItemChange { priority: 3 })
        .await
        .unwrap();
    client.cancel(item, &Cancel::default()).await.unwrap();
    client.retry(item).await.unwrap();
    client.delete_workflow(workflow).await.unwrap();
    let query = AuditQuery {
        actor: Some(actor),
        limit: Some(500),
        ..AuditQuery::default()
    };
    let lines = client.audit(&query).await.unwrap().items;
    let actions: Vec<&str> = lines.iter().rev().map(|line| line.action.as_str()).collect();
    let expected = [
        "workspace.create",
        "workspace.change",
        "workflow.create",
        "workflow.version",
        "plan.change",
        "queue.prioritise",
        "queue.cancel",
        "queue.retry",
        "workflow.delete",
    ];
    assert_eq!(actions, expected);
    let change = lines
        .iter()
        .find(|line| line.action == "workspace.change")
        .unwrap();
    assert_eq!(change.detail["max_concurrent"]["to"], 0, "{change:?}");
    // People know a token by its name.
    let name = change.actor.split(':').nth(1).unwrap().to_owned();
    let by_name = AuditQuery {
        actor: Some(name),
        ..query.clone()
    };
    let found = client.audit(&by_name).await.unwrap().items;
    assert!(found.iter().any(|line| line.id == change.id), "{found:?}");
    assert_eq!(
        (change.workspace_id, &change.subject),
        (Some(workspace), &workspace.to_string())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_by_the_command_line_and_by_sql_are_written_down_too() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let made = command(&scene.database, &["workspaces", "create", "north"]);
    let id = made["id"].as_str().unwrap();
    let rename = "update stationmaster.workspaces set name = 'south' where id = $1::uuid";
    sqlx::query(rename)
        .bind(id)
        .execute(&scene.database.pool)
        .await
        .unwrap();
    let query = AuditQuery {
        subject: Some(id.to_owned()),
        ..AuditQuery::default()
    };
    let lines = client.audit(&query).await.unwrap().items;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].actor.starts_with("cli:"), "{:?}", lines[1]);
    assert_eq!(
        (lines[0].action.as_str(), &lines[0].detail["name"]["from"]),
        ("workspace.change", &"north".into())
    );
    let account: String = sqlx::query_scalar("select session_user::text")
        .fetch_one(&scene.database.pool)
        .await
        .unwrap();
    assert_eq!(lines[0].actor, account);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_kept_for_their_time_and_no_longer() {
    // The server keeps all of them, so that only we prune.
    let scene = Scene::with(&[("HTTP__AUDIT_RETENTION", "3000d")]).await;
    let old = "insert into stationmaster.audit (at, actor, action, subject)
               select now() - make_interval(days => d), 'a test', 'test.old', d::text from unnest(array[500, 401, 399, 1]) d";
    sqlx::query(old).execute(&scene.database.pool).await.unwrap();
    let days = |days: u64| std::time::Duration::from_hours(days * 24);
    assert_eq!(
        stationmaster_core::audit::prune(&scene.core, days(400))
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        stationmaster_core::audit::prune(&scene.core, days(400))
            .await
            .unwrap(),
        0
    );
    let kept = "select count(*) from stationmaster.audit where action = 'test.old'";
    assert_eq!(scene.database.number(kept).await, 2);
}
