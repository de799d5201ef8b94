//! What needs a person, in one place: grouped, retried, set aside, and no wider than what was looked at.

use reqwest::{Method, StatusCode};
use serde_json::json;
use stationmaster_client::wire::{
    AuditQuery, BulkFailures, Complete, CompleteStatus, ExecutionQuery, ExecutionStatus, FailureGroup,
    FailureKind, FailureQuery, ItemStatus, NewSignal, PageQuery, QueueQuery, SignalStatus,
};
use stationmaster_client::{Client, Error};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, Tenant, answer};
use crate::support::eventually;

/// An execution that ends with these words. Answers its item.
async fn fails(scene: &Scene, client: &Client, tenant: Tenant, words: &str) -> Uuid {
    let item = scene.item(tenant).await;
    eventually("it runs", async || {
        client.queue_item(item).await.unwrap().item.status == ItemStatus::Dispatched
    })
    .await;
    let execution = client.queue_item(item).await.unwrap().item.execution_id.unwrap();
    let end = Complete {
        status: CompleteStatus::Failed,
        output: None,
        force: true,
        error: Some(serde_json::value::to_raw_value(&json!({ "message": words })).unwrap()),
    };
    client.complete(execution, &end).await.unwrap();
    item
}

async fn groups(client: &Client) -> Vec<FailureGroup> {
    client.failures(&FailureQuery::default()).await.unwrap().items
}

fn of(group: &FailureGroup) -> BulkFailures {
    BulkFailures {
        group: Some(group.id.clone()),
        ..BulkFailures::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_is_grouped_by_its_words_without_their_numbers_and_retried_by_group() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let tenant = scene.tenant(5, ENDLESS).await;
    let lost = format!("order {} not found at 2026-03-01T10:00:00Z", Uuid::now_v7());
    let first = fails(&scene, &client, tenant, &lost).await;
    let second = fails(&scene, &client, tenant, "order 18 not found at 12:30:01.5").await;
    let third = fails(&scene, &client, tenant, "the disk is full").await;
    let sent = client
        .send_signal(&NewSignal::new("nobodys", "go"))
        .await
        .unwrap();
    eventually("it is a dead letter", async || {
        client.signal(&sent.id).await.unwrap().status == SignalStatus::Dead
    })
    .await;

    let found = groups(&client).await;
    let told: Vec<(FailureKind, i64)> = found.iter().map(|group| (group.kind, group.count)).collect();
    let expected = [
        (FailureKind::Signal, 1),
        (FailureKind::Execution, 1),
        (FailureKind::Execution, 2),
    ];
    assert_eq!(told, expected, "the newest first: {found:?}");
    let latest = BulkFailures {
        ended_after: Some(found[0].last_at),
        dry_run: true,
        ..BulkFailures::default()
    };
    let seen = client.retry_failures(&latest, None).await.unwrap();
    assert_eq!(seen.items, 1, "a time narrows it, and is a filter");
    let orders = &found[2];
    assert_eq!(
        orders.message, "order 18 not found at 12:30:01.5",
        "the last one's"
    );
    assert_eq!(orders.queue_item_id, Some(second));
    assert_eq!(orders.workspace_id, Some(tenant.workspace));
    assert!(orders.first_at < orders.last_at, "{orders:?}");
    assert_eq!(
        client.failure_group(&orders.id[..6]).await.unwrap().id,
        orders.id,
        "by its beginning"
    );

    // The item tells what became of its execution, and is found by it.
    let item = client.queue_item(first).await.unwrap().item;
    assert_eq!(
        (item.status, item.outcome, item.last_error.as_deref()),
        (
            ItemStatus::Dispatched,
            Some(ExecutionStatus::Failed),
            Some(lost.as_str())
        )
    );
    let query = QueueQuery {
        search: Some("DISK IS".to_owned()),
        ..QueueQuery::default()
    };
    let page = client.queue(&query).await.unwrap().items;
    assert_eq!(page.iter().map(|item| item.id).collect::<Vec<_>>(), [third]);

    let look = BulkFailures {
        dry_run: true,
        ..of(orders)
    };
    let seen = client.retry_failures(&look, None).await.unwrap();
    assert_eq!((seen.items, seen.more, seen.sample.len()), (2, false, 2));
    let done = client.retry_failures(&of(orders), None).await.unwrap();
    assert_eq!((done.items, done.more), (2, false));
    assert_eq!(groups(&client).await.len(), 2, "what was retried needs nobody");
    let outcome = client.queue_item(first).await.unwrap().item.outcome;
    assert_eq!(outcome, None, "it waits or runs again");

    // What a retry has followed is no failure any more, unless somebody asks for all of them.
    let mut query = ExecutionQuery {
        status: Some(ExecutionStatus::Failed),
        ..ExecutionQuery::default()
    };
    assert_eq!(client.executions(&query).await.unwrap().items.len(), 1);
    query.superseded = Some(true);
    let all = client.executions(&query).await.unwrap().items;
    assert_eq!(all.len(), 3);
    assert_eq!(all.iter().filter(|one| one.superseded_at.is_some()).count(), 2);

    // A dead letter is retried like everything else, and fails again: a failure of its own.
    let signals = BulkFailures {
        kind: Some(FailureKind::Signal),
        before: Some(found[0].last_at + jiff::SignedDuration::from_micros(1)),
        ..BulkFailures::default()
    };
    assert_eq!(client.retry_failures(&signals, None).await.unwrap().items, 1);
    eventually("it died again", async || {
        groups(&client)
            .await
            .iter()
            .any(|group| group.kind == FailureKind::Signal && group.last_at > found[0].last_at)
    })
    .await;
    let again = client.retry_failures(&signals, None).await.unwrap();
    assert_eq!(again.items, 0, "it died after what was looked at");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_set_aside_stays_on_record_and_what_fails_later_is_not_swept_along() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let tenant = scene.tenant(5, ENDLESS).await;
    fails(&scene, &client, tenant, "no route to host 10.0.0.7").await;
    let group = groups(&client).await.remove(0);
    let look = BulkFailures {
        dry_run: true,
        ..of(&group)
    };
    let seen = client.set_failures_aside(&look, None).await.unwrap();
    assert_eq!((seen.items, seen.dry_run), (1, true));
    fails(&scene, &client, tenant, "no route to host 10.0.0.8").await;
    let act = BulkFailures {
        before: Some(seen.as_of),
        note: Some("the network team knows".to_owned()),
        ..of(&group)
    };
    let done = client.set_failures_aside(&act, None).await.unwrap();
    assert_eq!(done.items, 1, "not the one that came later");
    let left = groups(&client).await;
    assert_eq!(
        (left.len(), left[0].id.as_str(), left[0].count),
        (1, group.id.as_str(), 1)
    );
    let members = client
        .failures_of(&group.id, &PageQuery::default())
        .await
        .unwrap()
        .items;
    let notes: Vec<Option<&str>> = members.iter().map(|failure| failure.note.as_deref()).collect();
    assert_eq!(notes, [None, Some("the network team knows")], "newest first");
    let query = AuditQuery {
        action: Some("failures.set_aside".to_owned()),
        ..AuditQuery::default()
    };
    let audited = client.audit(&query).await.unwrap().items;
    assert_eq!(
        (audited.len(), audited[0].workspace_id),
        (1, Some(tenant.workspace))
    );

    // Still, its item can be retried by itself.
    let item = members[1].queue_item_id.unwrap();
    client.retry(item).await.unwrap();
    let members = client
        .failures_of(&group.id, &PageQuery::default())
        .await
        .unwrap()
        .items;
    assert_eq!(members.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_nothing_narrows_is_refused_and_a_note_narrows_nothing() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let everything = [
        ("/v1/failures/retry", json!({})),
        ("/v1/failures/set-aside", json!({ "note": "all of it" })),
        ("/v1/queue/cancel", json!({ "reason": "all of it" })),
        ("/v1/queue/retry", json!({ "dry_run": true })),
        ("/v1/queue/priority", json!({ "priority": 3 })),
        ("/v1/signals/replay", json!({})),
    ];
    for (path, body) in everything {
        let (status, refused) = answer(scene.ask(Method::POST, path, Some(&token)).json(&body)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {refused}");
        assert!(refused.to_string().contains("/all"), "{path}: {refused}");
        let mut body = body;
        body["all"] = true.into();
        let (status, done) = answer(scene.ask(Method::POST, path, Some(&token)).json(&body)).await;
        assert_eq!(
            (status, &done["items"]),
            (StatusCode::OK, &json!(0)),
            "{path}: {done}"
        );
    }
    let wrong = json!({ "all": true, "after": "the moon" });
    for path in ["/v1/failures/retry", "/v1/queue/cancel", "/v1/signals/replay"] {
        let (status, refused) = answer(scene.ask(Method::POST, path, Some(&token)).json(&wrong)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {refused}");
        assert!(refused.to_string().contains("/after"), "{path}: {refused}");
    }
    let bogus = json!({ "all": true, "end_reason": "bogus" });
    let (status, refused) = answer(
        scene
            .ask(Method::POST, "/v1/queue/retry", Some(&token))
            .json(&bogus),
    )
    .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    assert!(
        refused.to_string().contains("quarantined"),
        "the words there are: {refused}"
    );
}

/// A call that took long says that there may be more, and a second walk looks whether something changed hands: both come to a group that is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_goes_on_with_a_group_of_which_nothing_is_left_is_told_that_it_is_done() {
    let scene = Scene::new().await;
    let admin = scene.admin().await;
    let tenant = scene.tenant(5, ENDLESS).await;
    fails(&scene, &admin, tenant, "order 17 not found").await;
    let mut which = BulkFailures {
        group: Some(groups(&admin).await.remove(0).id),
        dry_run: true,
        ..BulkFailures::default()
    };
    let seen = admin.retry_failures(&which, None).await.unwrap();
    (which.dry_run, which.before) = (false, Some(seen.as_of));
    let done = admin.retry_failures(&which, None).await.unwrap();
    assert_eq!(done.items, 1);
    let rest = admin.retry_failures(&which, None).await.unwrap();
    assert_eq!((rest.items, rest.more), (0, false));
    which.before = None;
    let refused = admin.retry_failures(&which, None).await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_of_others_are_neither_seen_nor_touched() {
    let scene = Scene::new().await;
    let admin = scene.admin().await;
    let (own, foreign) = (scene.tenant(5, ENDLESS).await, scene.tenant(5, ENDLESS).await);
    fails(&scene, &admin, own, "mine").await;
    fails(&scene, &admin, foreign, "theirs").await;
    let client = scene.client(&scene.token(Role::Operator, Some(own.workspace)).await);
    let seen = groups(&client).await;
    assert_eq!((seen.len(), seen[0].message.as_str()), (1, "mine"));
    let all = groups(&admin).await;
    assert_eq!(all.len(), 2);
    let theirs = all.iter().find(|group| group.message == "theirs").unwrap();
    let refused = client.failure_group(&theirs.id).await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
    let refused = client.retry_failures(&of(theirs), None).await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
    let everything = BulkFailures {
        all: true,
        ..BulkFailures::default()
    };
    assert_eq!(
        client.set_failures_aside(&everything, None).await.unwrap().items,
        1
    );
    assert_eq!(groups(&admin).await.len(), 1, "theirs is there still");
    let mut transaction = scene.database.pool.begin().await.unwrap();
    let act = "select set_config('role', 'stationmaster_api', true), set_config('stationmaster.workspaces', $1, true)";
    sqlx::query(act)
        .bind(own.workspace.to_string())
        .execute(&mut *transaction)
        .await
        .unwrap();
    let seen: i64 = sqlx::query_scalar("select count(*) from stationmaster.failures")
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    assert_eq!(seen, 1, "behind the wall too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_of_a_workflow_that_fails_can_be_kept_from_following() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let tenant = scene.tenant(1, ENDLESS).await;
    fails(&scene, &client, tenant, "no such table").await;
    let group = groups(&client).await.remove(0);
    let running = scene.item(tenant).await;
    eventually("it runs", async || {
        client.queue_item(running).await.unwrap().item.status == ItemStatus::Dispatched
    })
    .await;
    let waiting = scene.item(tenant).await;
    let done = client.cancel_failing(&of(&group), None).await.unwrap();
    assert_eq!(done.items, 1);
    let status = async |id| client.queue_item(id).await.unwrap().item.status;
    assert_eq!(status(waiting).await, ItemStatus::Cancelled);
    assert_eq!(status(running).await, ItemStatus::Dispatched, "what runs goes on");
    let sent = client
        .send_signal(&NewSignal::new("nobodys", "go"))
        .await
        .unwrap();
    eventually("it is a dead letter", async || {
        client.signal(&sent.id).await.unwrap().status == SignalStatus::Dead
    })
    .await;
    let dead = groups(&client).await.remove(0);
    let refused = client.cancel_failing(&of(&dead), None).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
}
