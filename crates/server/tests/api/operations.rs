//! Operations: what is done to everything that matches, by the servers, while nobody waits for it.

use reqwest::{Method, StatusCode};
use serde_json::json;
use stationmaster_client::wire::{
    AuditQuery, BulkCancel, BulkPriority, BulkRetry, ItemStatus, Operation, OperationKind, OperationQuery,
    OperationStatus, QueueQuery,
};
use stationmaster_client::{Client, Error};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, Tenant, answer, problem};
use crate::support::eventually;

/// Waits for the end of it.
async fn ended(client: &Client, begun: &Operation) -> Operation {
    let id = begun.id.to_string();
    eventually("the operation has ended", async || {
        client.operation(&id).await.unwrap().status.has_ended()
    })
    .await;
    client.operation(&id).await.unwrap()
}

fn cancel(tenant: Tenant) -> BulkCancel {
    BulkCancel {
        workspace_id: Some(tenant.workspace),
        reason: Some("not wanted".to_owned()),
        ..BulkCancel::default()
    }
}

async fn statuses(client: &Client, tenant: Tenant) -> Vec<ItemStatus> {
    let query = QueueQuery {
        workspace_id: Some(tenant.workspace.into()),
        limit: Some(500),
        ..QueueQuery::default()
    };
    let items = client.queue(&query).await.unwrap().items;
    items.iter().map(|item| item.status).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_carry_out_what_was_asked_for_bound_to_its_look_and_tell_how_it_went() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let (tenant, other) = (scene.tenant(0, ENDLESS).await, scene.tenant(0, ENDLESS).await);
    for _ in 0..3 {
        scene.item(tenant).await;
        scene.item(other).await;
    }

    // By hand: the answer says where to look, and a repeat under the same key begins nothing more.
    let token = scene.token(Role::Operator, Some(tenant.workspace)).await;
    let ask = || {
        scene
            .ask(Method::POST, "/v1/queue/cancel", Some(&token))
            .header("Prefer", "wait=10, respond-async")
            .header("Idempotency-Key", "once")
            .json(&cancel(tenant))
    };
    let response = ask().send().await.unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("preference-applied"), "respond-async");
    let location = header("location");
    let begun: Operation = response.json().await.unwrap();
    assert_eq!(location, format!("/v1/operations/{}", begun.id));
    assert_eq!(
        (begun.kind, begun.total, begun.total_is_least),
        (OperationKind::CancelQueue, 3, false)
    );
    assert_eq!(begun.workspaces, Some(vec![tenant.workspace]));
    let again: Operation = ask().send().await.unwrap().json().await.unwrap();
    assert_eq!(again.id, begun.id);

    let over = ended(&client, &begun).await;
    assert_eq!(
        (over.status, over.done, over.unchanged, over.error.as_deref()),
        (OperationStatus::Completed, 3, Some(0), None)
    );
    assert!(over.server.is_some() && over.started_at.is_some() && over.ended_at.is_some());
    assert_eq!(statuses(&client, tenant).await, [ItemStatus::Cancelled; 3]);
    assert_eq!(
        statuses(&client, other).await,
        [ItemStatus::Pending; 3],
        "no wider"
    );
    assert_eq!(
        client
            .operations(&OperationQuery::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );

    // What was enqueued after the look is not touched, however late the servers come to it.
    let look = BulkCancel {
        dry_run: true,
        ..cancel(other)
    };
    let seen = client.cancel_all(&look, None).await.unwrap();
    scene.item(other).await;
    let bound = BulkCancel {
        created_before: Some(seen.as_of),
        ..cancel(other)
    };
    let begun = client
        .begin(OperationKind::CancelQueue, &bound, None)
        .await
        .unwrap();
    assert_eq!(ended(&client, &begun).await.done, 3);
    let left = statuses(&client, other).await;
    assert_eq!(
        left.iter()
            .filter(|status| **status == ItemStatus::Pending)
            .count(),
        1
    );

    // The other kinds: some of what matches may need no change.
    let priority = BulkPriority::<Uuid> {
        workspace_id: Some(other.workspace),
        priority: 7,
        ..BulkPriority::default()
    };
    let again = async || {
        client
            .begin(OperationKind::PrioritiseQueue, &priority, None)
            .await
            .unwrap()
    };
    assert_eq!(ended(&client, &again().await).await.done, 1);
    let same = ended(&client, &again().await).await;
    assert_eq!((same.done, same.unchanged), (0, Some(1)));
    let retry = BulkRetry::<Uuid> {
        workspace_id: Some(tenant.workspace),
        ..BulkRetry::default()
    };
    let begun = client
        .begin(OperationKind::RetryQueue, &retry, None)
        .await
        .unwrap();
    assert_eq!(ended(&client, &begun).await.done, 3);
    assert_eq!(statuses(&client, tenant).await, [ItemStatus::Pending; 3]);

    // It is on record under the name of whoever asked.
    let lines = AuditQuery {
        subject: Some(over.id.to_string()),
        ..AuditQuery::default()
    };
    let lines = client.audit(&lines).await.unwrap().items;
    let actions: Vec<&str> = lines.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["operation.completed", "operation.begun"]);
    assert!(
        lines.iter().all(|line| line.actor == over.created_by),
        "{lines:?}"
    );
    assert!(over.created_by.starts_with("token:"), "{}", over.created_by);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_shows_to_whoever_may_see_all_that_it_is_about_and_reaches_no_further() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let (mine, foreign) = (scene.tenant(0, ENDLESS).await, scene.tenant(0, ENDLESS).await);
    scene.item(mine).await;
    scene.item(foreign).await;
    let own = scene.client(&scene.token(Role::Operator, Some(mine.workspace)).await);
    let stranger = scene.client(&scene.token(Role::Operator, Some(foreign.workspace)).await);

    // Everything, said by somebody who may see one workspace, is that workspace.
    let everything = BulkCancel::<Uuid> {
        all: true,
        ..BulkCancel::default()
    };
    let begun = own
        .begin(OperationKind::CancelQueue, &everything, None)
        .await
        .unwrap();
    assert_eq!(
        (begun.total, begun.workspaces.clone()),
        (1, Some(vec![mine.workspace]))
    );
    assert_eq!(ended(&own, &begun).await.done, 1);
    assert_eq!(statuses(&client, foreign).await, [ItemStatus::Pending]);

    let id = begun.id.to_string();
    assert!(matches!(stranger.operation(&id).await, Err(Error::NotFound(_))));
    assert!(matches!(
        stranger.cancel_operation(begun.id).await,
        Err(Error::NotFound(_))
    ));
    assert!(
        stranger
            .operations(&OperationQuery::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let refused = stranger
        .begin(OperationKind::CancelQueue, &cancel(mine), None)
        .await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");

    // One of all workspaces is for those who see all of them.
    let begun = client
        .begin(OperationKind::CancelQueue, &everything, None)
        .await
        .unwrap();
    assert_eq!(begun.workspaces, None);
    ended(&client, &begun).await;
    let whole = begun.id.to_string();
    assert!(matches!(own.operation(&whole).await, Err(Error::NotFound(_))));
    assert_eq!(
        client.operation(&whole[..33]).await.unwrap().id,
        begun.id,
        "by its beginning"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_can_be_cancelled_and_a_look_or_a_place_to_go_on_from_is_none() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let tenant = scene.tenant(0, ENDLESS).await;
    scene.item(tenant).await;
    let token = scene.token(Role::Operator, None).await;
    let ask = |body: serde_json::Value| {
        answer(
            scene
                .ask(Method::POST, "/v1/queue/cancel", Some(&token))
                .header("Prefer", "respond-async")
                .json(&body),
        )
    };
    let (status, body) = ask(json!({ "workspace_id": tenant.workspace, "dry_run": true })).await;
    assert_eq!((status, &body["items"]), (StatusCode::OK, &json!(1)));
    let (status, body) = ask(json!({ "workspace_id": tenant.workspace, "after": Uuid::nil() })).await;
    assert_eq!(
        (status, body["errors"][0]["pointer"].as_str()),
        (StatusCode::UNPROCESSABLE_ENTITY, Some("/after"))
    );
    let (status, body) = ask(json!({ "reason": "x".repeat(1001) })).await;
    assert_eq!(
        (status, problem(&body)),
        (StatusCode::UNPROCESSABLE_ENTITY, "invalid")
    );
    let fields: Vec<_> = body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| &error["pointer"])
        .collect();
    assert_eq!(fields, ["/reason", "/all"], "all at once");

    // Somebody holds the item, so the operation cannot be over.
    let lock = scene
        .database
        .lock("select from stationmaster_internal.queue_pending for update")
        .await;
    let begun = client
        .begin(OperationKind::CancelQueue, &cancel(tenant), None)
        .await
        .unwrap();
    let (status, _) =
        answer(scene.ask(Method::GET, &format!("/v1/operations/{}", begun.id), Some(&token))).await;
    assert_eq!(status, StatusCode::OK);
    let response = scene
        .ask(Method::GET, &format!("/v1/operations/{}", begun.id), Some(&token))
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["retry-after"], "1", "it is not over");
    let cancelled = client.cancel_operation(begun.id).await.unwrap();
    assert_eq!(cancelled.status, OperationStatus::Cancelled);
    assert!(cancelled.ended_by.is_some());
    assert_eq!(
        client.cancel_operation(begun.id).await.unwrap().ended_at,
        cancelled.ended_at,
        "once"
    );
    lock.rollback().await.unwrap();
    let done = scene.item(tenant).await;
    let begun = client
        .begin(OperationKind::CancelQueue, &cancel(tenant), None)
        .await
        .unwrap();
    ended(&client, &begun).await;
    assert!(matches!(
        client.cancel_operation(begun.id).await,
        Err(Error::Conflict(_))
    ));
    assert_eq!(
        client.queue_item(done).await.unwrap().item.status,
        ItemStatus::Cancelled
    );
    let running = OperationQuery {
        status: Some(OperationStatus::Cancelled),
        ..OperationQuery::default()
    };
    assert_eq!(client.operations(&running).await.unwrap().items.len(), 1);
}
