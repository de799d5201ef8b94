//! A walk through the API with the typed client: what a user does on the first day, and what comes of it.

use serde_json::value::RawValue;
use stationmaster_client::wire::{
    BulkCancel, BulkRetry, Cancel, CancelledHow, Complete, CompleteStatus, Enqueue, ExecutionQuery,
    ExecutionStatus, ItemStatus, NewVersion, OverviewQuery, PageQuery, PlanChange, QueueItemChange,
    QueueQuery, RetriableStatus, Waiting, WorkflowChange, WorkflowQuery, WorkspaceChange,
};
use stationmaster_client::{Client, Error};
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene};
use crate::support::eventually;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

async fn make_tenant(client: &Client, limit: i32, graph: &str) -> (Uuid, Uuid) {
    let (workspace, workflow) = (Uuid::now_v7(), Uuid::now_v7());
    let change = WorkspaceChange {
        name: Some(format!("north {}", workspace.simple())),
        max_concurrent: Some(Some(limit)),
        ..WorkspaceChange::default()
    };
    let made = client.put_workspace(workspace, &change, None).await.unwrap();
    assert_eq!(
        (made.limit, made.plan.as_str(), made.paused),
        (limit, "FREE", false)
    );
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
    let version = NewVersion { workflow: raw(graph) };
    let made = client.add_version(workflow, &version, None).await.unwrap();
    assert_eq!(made.version, 1);
    (workspace, workflow)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_runs_waits_with_a_reason_and_ends_as_told() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let (workspace, workflow) = make_tenant(&client, 1, ENDLESS).await;

    let mut request = Enqueue::new(workspace, workflow);
    request.input = Some(raw(r#"{"order": 17, "exact": 1.50}"#));
    request.idempotency_key = Some("order-17".to_owned());
    let first = client.enqueue(&request).await.unwrap();
    assert!(!first.duplicate);
    let again = client.enqueue(&request).await.unwrap();
    assert_eq!((again.id, again.duplicate), (first.id, true));

    let mut execution = Uuid::nil();
    eventually("the first item runs", async || {
        let item = client.queue_item(first.id).await.unwrap().item;
        execution = item.execution_id.unwrap_or_default();
        item.status == ItemStatus::Dispatched
    })
    .await;
    let running = client.execution(execution).await.unwrap();
    assert_eq!(running.status, ExecutionStatus::Running);
    assert_eq!(running.input.unwrap().get(), r#"{"exact": 1.50, "order": 17}"#);

    let second = client
        .enqueue(&Enqueue::new(workspace, workflow))
        .await
        .unwrap()
        .id;
    eventually("the second item waits for the slot", async || {
        let waiting = client.queue_item(second).await.unwrap().waiting;
        matches!(waiting, Some(Waiting::Limit { limit: 1, active: 1, ref holders, position: 1 }) if holders == &[execution])
    })
    .await;
    let change = QueueItemChange { priority: 9 };
    assert_eq!(
        client.change_queue_item(second, &change).await.unwrap().priority,
        9
    );
    let why = Cancel {
        reason: Some("not needed".to_owned()),
    };
    assert_eq!(
        client.cancel(second, &why).await.unwrap().result,
        CancelledHow::Cancelled
    );
    assert!(matches!(
        client.cancel(second, &why).await,
        Err(Error::Conflict(_))
    ));
    assert_eq!(client.retry(second).await.unwrap().status, ItemStatus::Pending);

    let end = Complete {
        force: false,
        status: CompleteStatus::Failed,
        output: None,
        error: Some(raw(r#"{"message": "the bridge is out"}"#)),
    };
    let ended = client.complete(execution, &end).await.unwrap();
    assert_eq!(ended.status, ExecutionStatus::Failed);
    assert!(matches!(
        client.complete(execution, &end).await,
        Err(Error::Conflict(_))
    ));
    client.retry(first.id).await.unwrap();
    let former = client.cancel_execution(execution, &why).await;
    assert!(
        matches!(former, Err(Error::Conflict(_))),
        "not its successor: {former:?}"
    );
    let history = client.execution_history(execution).await.unwrap().items;
    let events: Vec<&str> = history.iter().map(|step| step.event.as_str()).collect();
    assert_eq!(events[..3], ["enqueued", "claimed", "dispatched"], "{events:?}");
    assert!(history[0].actor.starts_with("token:admin"), "{history:?}");
    let history = client.queue_history(second).await.unwrap().items;
    assert!(history.iter().any(|step| step.event == "retried"), "{history:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_asked_for_counted_cancelled_and_retried_by_filter() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let (workspace, workflow) = make_tenant(&client, 0, ENDLESS).await;
    let (other, others) = make_tenant(&client, 0, ENDLESS).await;
    let requests = vec![Enqueue::new(workspace, workflow); 25];
    assert_eq!(client.enqueue_all(requests).await.unwrap().len(), 25);
    client.enqueue(&Enqueue::new(other, others)).await.unwrap();

    let mut filter = BulkCancel {
        workspace_id: Some(workspace),
        reason: Some("a mistake".to_owned()),
        dry_run: true,
        ..BulkCancel::default()
    };
    let counted = client.cancel_all(&filter, None).await.unwrap();
    assert_eq!((counted.items, counted.more, counted.dry_run), (25, false, true));
    filter.dry_run = false;
    assert_eq!(client.cancel_all(&filter, None).await.unwrap().items, 25);
    let waiting = QueueQuery {
        status: Some(ItemStatus::Pending),
        ..QueueQuery::default()
    };
    assert_eq!(
        client.queue(&waiting).await.unwrap().items.len(),
        1,
        "the other workspace's stays"
    );

    let mut filter = BulkRetry {
        workspace_id: Some(workspace),
        status: Some(RetriableStatus::Cancelled),
        dry_run: true,
        ..BulkRetry::default()
    };
    assert_eq!(client.retry_all(&filter, None).await.unwrap().items, 25);
    filter.dry_run = false;
    assert_eq!(client.retry_all(&filter, None).await.unwrap().items, 25);
    assert_eq!(client.retry_all(&filter, None).await.unwrap().items, 0);
    let query = OverviewQuery::default();
    let overview = client.overview(&query).await.unwrap();
    assert_eq!(
        (overview.overview.waiting, overview.minutes.len(), overview.open),
        (26, 60, false)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overview_tells_of_paused_workflows_for_which_items_wait() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let (workspace, workflow) = make_tenant(&client, 2, ENDLESS).await;
    let (_, other) = make_tenant(&client, 2, ENDLESS).await;
    for workflow in [workflow, other] {
        client.pause_workflow(workflow).await.unwrap();
    }
    // What a claim does with those that it finds.
    let parked = "insert into stationmaster_internal.queue_pending (item_id, seq, rank, workspace_id, workflow_definition_id,
                      workflow_definition_version_id, stage)
                  select stationmaster.new_id(), n, 0, $1, $2, $2, 'parked' from generate_series(1, 3) n";
    sqlx::query(parked)
        .bind(workspace)
        .bind(workflow)
        .execute(&scene.database.pool)
        .await
        .unwrap();
    let held = client.overview(&OverviewQuery::default()).await.unwrap().held;
    let told: Vec<_> = held
        .iter()
        .map(|held| (held.workflow_definition_id, held.held))
        .collect();
    assert_eq!(told, [(workflow, 3)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_catalogue_is_made_changed_paused_and_deleted() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let (workspace, workflow) = make_tenant(&client, 2, ENDLESS).await;
    assert!(client.pause_workspace(workspace).await.unwrap().paused);
    assert!(!client.resume_workspace(workspace).await.unwrap().paused);
    assert!(client.pause_workflow(workflow).await.unwrap().paused);
    assert!(!client.resume_workflow(workflow).await.unwrap().paused);
    let nobody = client.pause_workspace(Uuid::now_v7()).await;
    assert!(matches!(nobody, Err(Error::NotFound(_))), "{nobody:?}");

    let plan = PlanChange {
        max_concurrent: 7,
        weight: Some(2.5),
    };
    client.put_plan("GOLD", &plan, None).await.unwrap();
    let feather = PlanChange {
        weight: Some(1e-9),
        ..plan.clone()
    };
    let refused = client.put_plan("FEATHER", &feather, None).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert!(
        client
            .plans()
            .await
            .unwrap()
            .iter()
            .any(|plan| plan.name == "GOLD" && plan.max_concurrent == 7)
    );
    let change = WorkspaceChange {
        plan: Some("GOLD".to_owned()),
        max_concurrent: Some(None),
        ..WorkspaceChange::default()
    };
    let changed = client.put_workspace(workspace, &change, None).await.unwrap();
    assert_eq!(
        (changed.limit, changed.max_concurrent, changed.name),
        (7, None, format!("north-{}", workspace.simple()))
    );

    let version = NewVersion {
        workflow: raw(r#"{"nodes": [{"id": "b", "type": "noop"}]}"#),
    };
    client.add_version(workflow, &version, None).await.unwrap();
    let versions = client
        .versions(workflow, &PageQuery::default())
        .await
        .unwrap()
        .items;
    assert_eq!(
        versions.iter().map(|version| version.version).collect::<Vec<_>>(),
        [2, 1]
    );
    assert_eq!(client.workflow(workflow).await.unwrap().current_version, Some(2));
    let cycle = NewVersion {
        workflow: raw(
            r#"{"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]}"#,
        ),
    };
    let refused = client.add_version(workflow, &cycle, None).await.unwrap_err();
    assert!(refused.to_string().contains("cycle"), "{refused}");

    let query = WorkflowQuery {
        workspace_id: Some(workspace.into()),
        ..WorkflowQuery::default()
    };
    assert_eq!(client.workflows(&query).await.unwrap().items.len(), 1);
    client.delete_workflow(workflow).await.unwrap();
    client.delete_workspace(workspace).await.unwrap();
    assert!(matches!(
        client.workspace(workspace).await,
        Err(Error::NotFound(_))
    ));
    assert_eq!(client.servers().await.unwrap().len(), 1);
    assert!(
        client
            .executions(&ExecutionQuery::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}
