//! Signals, triggers and dispatchers by HTTP.

use reqwest::{Method, StatusCode};
use serde_json::json;
use stationmaster_client::wire::{
    self, AuditQuery, EventQuery, NewSignal, SignalQuery, SignalStatus, TriggerChange, TriggerPlace,
};
use stationmaster_client::{Client, Error, Told};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, Tenant, answer, problem};
use crate::support::eventually;

const EVERY_QUEUE: TriggerPlace = TriggerPlace { task_queue: None };

async fn trigger(client: &Client, tenant: Tenant, project: &str, name: &str) {
    let change = TriggerChange {
        workflow_definition_id: tenant.workflow,
        payload_schema: None,
        priority: Some(0),
    };
    client
        .put_trigger(project, name, &EVERY_QUEUE, &change)
        .await
        .unwrap();
}

async fn until(client: &Client, id: &str, status: SignalStatus) {
    eventually("the signal is settled", async || {
        client.signal(id).await.unwrap().status == status
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_task_queues_than_a_project_may_have_are_refused_with_the_field() {
    let scene = Scene::new().await;
    let admin = scene.admin().await;
    let tenant = scene.tenant(1, ENDLESS).await;
    trigger(&admin, tenant, "shop", "order.paid").await;
    sqlx::query("update stationmaster.projects set max_task_queues = 1 where name = 'shop'")
        .execute(&scene.database.pool)
        .await
        .unwrap();
    let token = scene.token(Role::Operator, Some(tenant.workspace)).await;
    let send = |queue: &str| {
        let body = json!({ "project": "shop", "task_queue": queue, "name": "order.paid" });
        scene.ask(Method::POST, "/v1/signals", Some(&token)).json(&body)
    };
    assert_eq!(answer(send("day")).await.0, StatusCode::ACCEPTED);
    let (status, refused) = answer(send("night")).await;
    assert!(status.is_client_error(), "{status}: {refused}");
    assert!(refused.to_string().contains("/task_queue"), "{refused}");
    let change = TriggerChange {
        workflow_definition_id: tenant.workflow,
        payload_schema: None,
        priority: Some(0),
    };
    let night = TriggerPlace {
        task_queue: Some("night".to_owned()),
    };
    let refused = admin.put_trigger("shop", "order.paid", &night, &change).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_is_accepted_once_for_its_id_and_becomes_a_queue_item() {
    let scene = Scene::new().await;
    let admin = scene.admin().await;
    let tenant = scene.tenant(1, ENDLESS).await;
    trigger(&admin, tenant, "shop", "order.paid").await;
    let token = scene.token(Role::Operator, Some(tenant.workspace)).await;
    let ask = |amount: i32| {
        let body = json!({ "id": "pay 7/a", "project": "shop", "name": "order.paid", "payload": { "amount": amount } });
        scene.ask(Method::POST, "/v1/signals", Some(&token)).json(&body)
    };
    let response = ask(1).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let (status, shown) = answer(scene.ask(Method::GET, &location, Some(&token))).await;
    assert_eq!((status, &shown["id"]), (StatusCode::OK, &json!("pay 7/a")));
    let (status, again) = answer(ask(1)).await;
    assert_eq!(
        (status, &again["duplicate"]),
        (StatusCode::ACCEPTED, &json!(true))
    );
    let (status, other) = answer(ask(2)).await;
    assert_eq!((status, problem(&other)), (StatusCode::CONFLICT, "conflict"));
    let client = scene.client(&token);
    until(&client, "pay 7/a", SignalStatus::Routed).await;
    let item = client.signal("pay 7/a").await.unwrap().queue_item_id.unwrap();
    assert_eq!(
        client.queue_item(item).await.unwrap().item.workspace_id,
        tenant.workspace
    );
    let sent = client
        .send_signals(vec![NewSignal::new("shop", "order.paid"); 3])
        .await
        .unwrap();
    assert!(sent.iter().all(|sent| !sent.duplicate), "{sent:?}");
    let query = SignalQuery {
        project: Some("shop".to_owned()),
        limit: Some(3),
        ..SignalQuery::default()
    };
    let page = client.signals(&query).await.unwrap();
    let query = SignalQuery {
        cursor: page.next_cursor,
        ..query
    };
    let rest = client.signals(&query).await.unwrap();
    assert_eq!((page.items.len(), rest.items.len()), (3, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_told_and_routed_when_it_is_replayed() {
    let scene = Scene::new().await;
    let admin = scene.admin().await;
    let tenant = scene.tenant(1, ENDLESS).await;
    trigger(&admin, tenant, "shop", "order.paid").await;
    let token = scene.token(Role::Admin, Some(tenant.workspace)).await;
    let client = scene.client(&token);
    let family = EventQuery {
        family: Some("signal".to_owned()),
        ..EventQuery::default()
    };
    let mut events = client.events(&family, None).await.unwrap();
    assert!(matches!(events.next().await.unwrap(), Some(Told::Hello(_))));
    let sent = client
        .send_signal(&NewSignal::new("shop", "order.lost"))
        .await
        .unwrap();
    until(&client, &sent.id, SignalStatus::Dead).await;
    let dead = SignalQuery {
        status: Some(SignalStatus::Dead),
        ..SignalQuery::default()
    };
    let letters = client.signals(&dead).await.unwrap().items;
    assert_eq!(
        (letters.len(), letters[0].reason.as_deref()),
        (1, Some("unknown_signal"))
    );
    let Some(Told::Event(event)) = events.next().await.unwrap() else {
        panic!("a dead letter is told");
    };
    assert_eq!(
        (event.kind.as_str(), event.workspace_id),
        ("signal.dead", Some(tenant.workspace))
    );
    assert_eq!(event.detail["signal_id"], json!(sent.id));
    trigger(&client, tenant, "shop", "order.lost").await;
    client.replay_signal(&sent.id).await.unwrap();
    until(&client, &sent.id, SignalStatus::Routed).await;
    let path = format!("/v1/signals/{}/replay", sent.id);
    let (status, _) = answer(scene.ask(Method::POST, &path, Some(&token))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let query = AuditQuery {
        action: Some("signal.replay".to_owned()),
        ..AuditQuery::default()
    };
    let lines = admin.audit(&query).await.unwrap().items;
    assert_eq!((lines.len(), &lines[0].subject), (1, &sent.id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projects_of_others_and_of_nobody_are_out_of_reach() {
    let scene = Scene::new().await;
    let admin = scene.admin().await;
    let (own, foreign) = (scene.tenant(1, ENDLESS).await, scene.tenant(1, ENDLESS).await);
    trigger(&admin, own, "mine", "go").await;
    trigger(&admin, foreign, "theirs", "go").await;
    for project in ["theirs", "nobodys"] {
        admin.send_signal(&NewSignal::new(project, "go")).await.unwrap();
    }
    let token = scene.token(Role::Admin, Some(own.workspace)).await;
    let client = scene.client(&token);
    for project in ["theirs", "nobodys"] {
        let body = json!({ "project": project, "name": "go" });
        let (status, _) = answer(scene.ask(Method::POST, "/v1/signals", Some(&token)).json(&body)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{project}");
        let path = format!("/v1/triggers/{project}/go");
        let body = json!({ "workflow_definition_id": own.workflow });
        let (status, _) = answer(scene.ask(Method::PUT, &path, Some(&token)).json(&body)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{project}");
        let (status, _) = answer(scene.ask(Method::DELETE, &path, Some(&token))).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{project}");
    }
    let body = json!({ "workflow_definition_id": foreign.workflow });
    let (status, _) = answer(
        scene
            .ask(Method::PUT, "/v1/triggers/mine/go", Some(&token))
            .json(&body),
    )
    .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let signals = client.signals(&SignalQuery::default()).await.unwrap().items;
    assert!(signals.is_empty(), "{signals:?}");
    let dispatchers = client
        .dispatchers(&wire::DispatcherQuery::default())
        .await
        .unwrap()
        .items;
    assert!(dispatchers.is_empty(), "{dispatchers:?}");
    client.send_signal(&NewSignal::new("mine", "go")).await.unwrap();
    let seen = client.dispatcher("dispatcher-mine-default").await.unwrap();
    assert_eq!(seen.project, "mine");
    let triggers = client
        .triggers(&wire::TriggerQuery::default())
        .await
        .unwrap()
        .items;
    assert_eq!(triggers.len(), 1, "{triggers:?}");
    let query = AuditQuery {
        action: Some("trigger.create".to_owned()),
        ..AuditQuery::default()
    };
    let lines = client.audit(&query).await.unwrap().items;
    assert_eq!((lines.len(), lines[0].subject.as_str()), (1, "mine/go"));
    let (status, _) = answer(scene.ask(Method::POST, "/v1/dispatchers/reconcile", Some(&token))).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let how = wire::Reconcile {
        dry_run: true,
        legacy: false,
    };
    let report = admin.reconcile_dispatchers(&how).await.unwrap();
    assert!(report.dry_run && report.done.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_the_wall_signals_and_dispatchers_of_others_cannot_be_seen() {
    let scene = Scene::new().await;
    let admin = scene.admin().await;
    let (own, foreign) = (scene.tenant(1, ENDLESS).await, scene.tenant(1, ENDLESS).await);
    trigger(&admin, own, "mine", "go").await;
    trigger(&admin, foreign, "theirs", "go").await;
    for project in ["mine", "theirs", "nobodys"] {
        admin.send_signal(&NewSignal::new(project, "go")).await.unwrap();
    }
    let mut transaction = scene.database.pool.begin().await.unwrap();
    let act = "select set_config('role', 'stationmaster_api', true), set_config('stationmaster.workspaces', $1, true)";
    sqlx::query(act)
        .bind(own.workspace.to_string())
        .execute(&mut *transaction)
        .await
        .unwrap();
    for relation in [
        "stationmaster.signals",
        "stationmaster_internal.signals_inbox",
        "stationmaster.triggers",
        "stationmaster.dispatchers",
        "stationmaster.projects",
    ] {
        let query = format!("select count(*) from {relation}");
        let seen: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_one(&mut *transaction)
            .await
            .unwrap();
        assert_eq!(seen, 1, "{relation}");
    }
    let refused = sqlx::query("select stationmaster.send_signal('theirs', 'go', id => $1)")
        .bind(Uuid::now_v7().to_string())
        .execute(&mut *transaction)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("row-level security"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_that_match_are_counted_and_put_back_and_no_others() {
    let scene = Scene::new().await;
    let admin = scene.admin().await;
    let (own, foreign) = (scene.tenant(9, ENDLESS).await, scene.tenant(9, ENDLESS).await);
    trigger(&admin, own, "mine", "go").await;
    trigger(&admin, foreign, "theirs", "go").await;
    for (project, name) in [
        ("mine", "lost"),
        ("mine", "lost"),
        ("mine", "gone"),
        ("theirs", "lost"),
    ] {
        let sent = admin.send_signal(&NewSignal::new(project, name)).await.unwrap();
        until(&admin, &sent.id, SignalStatus::Dead).await;
    }
    let token = scene.token(Role::Operator, Some(own.workspace)).await;
    let client = scene.client(&token);
    let filter: wire::BulkReplay = wire::BulkReplay {
        name: Some("lost".to_owned()),
        reason: Some("unknown_signal".to_owned()),
        dry_run: true,
        ..wire::BulkReplay::default()
    };
    let counted = client.replay_all(&filter, None).await.unwrap();
    assert_eq!((counted.items, counted.more, counted.dry_run), (2, false, true));
    let everything: wire::BulkReplay = wire::BulkReplay {
        all: true,
        dry_run: true,
        ..wire::BulkReplay::default()
    };
    assert_eq!(client.replay_all(&everything, None).await.unwrap().items, 3);
    assert_eq!(admin.replay_all(&everything, None).await.unwrap().items, 4);
    trigger(&admin, own, "mine", "lost").await;
    let filter: wire::BulkReplay = wire::BulkReplay {
        dry_run: false,
        ..filter
    };
    let done = client.replay_all(&filter, None).await.unwrap();
    assert_eq!((done.items, done.more, done.dry_run), (2, false, false));
    crate::support::eventually("they are routed", async || {
        let routed = "select count(*) from stationmaster.signals where name = 'lost' and status = 'ROUTED'";
        scene.database.number(routed).await == 2
    })
    .await;
    let audited = "select count(*) from stationmaster.audit where action = 'signal.replay' and workspace_id is not null";
    assert_eq!(scene.database.number(audited).await, 2);
    assert_eq!(client.replay_all(&everything, None).await.unwrap().items, 1);
}
