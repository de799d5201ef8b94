//! Alarms by HTTP: set, looked at, changed, fired; refused where the request cannot be, and to whoever is not concerned.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use stationmaster_client::wire::{self, AlarmStatus, AuditQuery, NewAlarm, OccurrenceQuery};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, answer, problem};

fn daily(workspace: Uuid) -> NewAlarm {
    NewAlarm {
        workspace_id: workspace,
        label: "report".to_owned(),
        cron_expr: Some("30 2 * * *".to_owned()),
        timezone: Some("Europe/Paris".to_owned()),
        ..NewAlarm::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_set_twice_under_one_key_is_one_alarm() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Operator, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let ask = |label: &str| {
        let body = json!({ "workspace_id": tenant.workspace, "cron_expr": "30 2 * * *", "timezone": "Europe/Paris", "label": label });
        let request = scene.ask(Method::POST, "/v1/alarms", Some(&token));
        request.header("idempotency-key", "nightly").json(&body)
    };
    let response = ask("a").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let first: Value = response.json().await.unwrap();
    assert_eq!(
        location,
        format!("/v1/alarms/{}", first["alarm"]["id"].as_str().unwrap())
    );
    assert_eq!(first["upcoming"].as_array().unwrap().len(), 10, "{first}");
    assert_eq!(
        first["upcoming"][0]["at"], first["alarm"]["next_fire_at"],
        "{first}"
    );
    let (status, again) = answer(ask("a")).await;
    assert_eq!((status, &again["duplicate"]), (StatusCode::OK, &json!(true)));
    assert_eq!(again["alarm"]["id"], first["alarm"]["id"]);
    let (status, other) = answer(ask("b")).await;
    assert_eq!(
        (status, problem(&other)),
        (StatusCode::CONFLICT, "idempotency-conflict")
    );
    let count = "select count(*) from stationmaster.alarms";
    assert_eq!(scene.database.number(count).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_is_refused_with_its_field_and_place() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Operator, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let refused = [
        (json!({ "cron_expr": "61 * * * *" }), "/cron_expr"),
        (
            json!({ "cron_expr": "@daily", "timezone": "Mars/Olympus" }),
            "/timezone",
        ),
        (json!({ "civil_at": "tomorrow" }), "/civil_at"),
        (json!({}), "/cron_expr"),
        (json!({ "cron_expr": "@daily", "delay": 3 }), "/cron_expr"),
        (json!({ "delay": -1 }), "/delay"),
        (
            json!({ "cron_expr": "@daily", "max_failures": 1000 }),
            "/max_failures",
        ),
        (
            json!({ "delay": 1, "target_url": "http://169.254.169.254/latest" }),
            "/target_url",
        ),
        (
            json!({ "delay": 1, "target_url": "http://localhost:1/" }),
            "/target_url",
        ),
        (
            json!({ "delay": 1, "target_url": "ftp://a.example" }),
            "/target_url",
        ),
    ];
    for (mut body, field) in refused {
        body["workspace_id"] = json!(tenant.workspace);
        let request = scene.ask(Method::POST, "/v1/alarms", Some(&token)).json(&body);
        let (status, problem) = answer(request).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body} {problem}");
        assert_eq!(problem["errors"][0]["field"], field, "{body} {problem}");
        if body["cron_expr"] == "61 * * * *" {
            let detail = problem["errors"][0]["detail"].as_str().unwrap();
            assert!(detail.ends_with("(at 0 to 2, \"61\")"), "{detail}");
        }
    }
    let path = "/v1/alarms/next?expr=0+25+*+*+*";
    let (status, body) = answer(scene.ask(Method::GET, path, Some(&token))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(body["errors"][0]["field"], "expr", "{body}");
    let count = "select count(*) from stationmaster.alarms";
    assert_eq!(scene.database.number(count).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_tells_what_the_change_of_the_clocks_does() {
    let scene = Scene::new().await;
    let viewer = scene.client(&scene.token(Role::Viewer, None).await);
    let query = wire::NextQuery {
        expr: "30 2 * * *".to_owned(),
        zone: Some("Europe/Paris".to_owned()),
        dst: None,
        after: Some("2026-03-28T12:00:00Z".parse().unwrap()),
        count: Some(2),
    };
    let fires = viewer.next_fires(&query).await.unwrap();
    assert_eq!(fires.items[0].at.to_string(), "2026-03-29T01:00:00Z");
    assert!(fires.items[0].note.is_some(), "{fires:?}");
    assert_eq!(fires.items[1].local, "2026-03-30T02:30:00+02:00");
    assert!(fires.items[1].note.is_none(), "{fires:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_is_changed_paused_fired_and_cancelled_and_every_step_is_audited() {
    let scene = Scene::with(&[("ALARMS__ENABLED", "false")]).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let token = scene.token(Role::Admin, Some(tenant.workspace)).await;
    let client = scene.client(&token);
    let id = client.set_alarm(&daily(tenant.workspace)).await.unwrap().alarm.id;
    let path = format!("/v1/alarms/{id}");
    let shown = scene.ask(Method::GET, &path, Some(&token)).send().await.unwrap();
    let tag = shown.headers()["etag"].to_str().unwrap().to_owned();
    let change = wire::AlarmChange {
        timezone: Some("Asia/Tokyo".to_owned()),
        ..wire::AlarmChange::default()
    };
    let changed = client.change_alarm(id, &change, Some(&tag)).await.unwrap();
    assert_eq!(
        (
            changed.alarm.timezone.as_deref(),
            changed.alarm.cron_expr.as_deref()
        ),
        (Some("Asia/Tokyo"), Some("30 2 * * *"))
    );
    let refused = scene
        .ask(Method::PATCH, &path, Some(&token))
        .header("if-match", &tag);
    let (status, _) = answer(refused.json(&json!({ "label": "late" }))).await;
    assert_eq!(status, StatusCode::PRECONDITION_FAILED);
    let paused = client.pause_alarm(id).await.unwrap();
    assert_eq!(paused.status, AlarmStatus::Paused);
    let resumed = client.resume_alarm(id).await.unwrap();
    assert_eq!(resumed.status, AlarmStatus::Active);
    let fired = client.fire_alarm(id).await.unwrap();
    let found = client
        .occurrences(id, &OccurrenceQuery::default())
        .await
        .unwrap()
        .items;
    assert_eq!(
        (found.len(), found[0].scheduled_for, found[0].origin.as_str()),
        (1, fired.scheduled_for, "manual")
    );
    let range = wire::Backfill {
        from: "2026-01-01T00:00:00Z".parse().unwrap(),
        to: "2026-01-04T00:00:00Z".parse().unwrap(),
        dry_run: true,
    };
    let preview = client.backfill(id, &range).await.unwrap();
    assert_eq!(preview.items.iter().filter(|item| item.fires).count(), 3);
    let range = wire::Backfill {
        dry_run: false,
        ..range
    };
    let made = client.backfill(id, &range).await.unwrap();
    assert_eq!(made.items, preview.items);
    let page = OccurrenceQuery {
        limit: Some(3),
        ..OccurrenceQuery::default()
    };
    let first = client.occurrences(id, &page).await.unwrap();
    let page = OccurrenceQuery {
        cursor: first.next_cursor,
        ..page
    };
    let rest = client.occurrences(id, &page).await.unwrap();
    assert_eq!((first.items.len(), rest.items.len()), (3, 1));
    client.cancel_alarm(id).await.unwrap();
    client.cancel_alarm(id).await.unwrap();
    let (status, _) = answer(scene.ask(Method::POST, &format!("{path}/fire"), Some(&token))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let query = AuditQuery {
        subject: Some(id.to_string()),
        ..AuditQuery::default()
    };
    let lines = client.audit(&query).await.unwrap().items;
    let actions: Vec<&str> = lines.iter().rev().map(|line| line.action.as_str()).collect();
    let expected = [
        "alarm.set",
        "alarm.edited",
        "alarm.paused",
        "alarm.resumed",
        "alarm.fired_by_hand",
        "alarm.backfilled",
        "alarm.cancelled",
    ];
    assert_eq!(actions, expected);
    assert!(
        lines.iter().all(|line| line.actor.starts_with("token:")),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_of_a_foreign_workspace_is_neither_set_nor_seen() {
    let scene = Scene::new().await;
    let (own, foreign) = (scene.tenant(0, ENDLESS).await, scene.tenant(0, ENDLESS).await);
    let token = scene.token(Role::Admin, Some(own.workspace)).await;
    let client = scene.client(&token);
    let body = json!({ "workspace_id": foreign.workspace, "cron_expr": "@daily" });
    let (status, _) = answer(scene.ask(Method::POST, "/v1/alarms", Some(&token)).json(&body)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let admin = scene.admin().await;
    let theirs = admin.set_alarm(&daily(foreign.workspace)).await.unwrap().alarm.id;
    let mine = client.set_alarm(&daily(own.workspace)).await.unwrap().alarm.id;
    assert!(client.alarm(theirs).await.is_err());
    let query = wire::AlarmQuery {
        search: Some("REPORT".to_owned()),
        ..wire::AlarmQuery::default()
    };
    let seen = client.alarms(&query).await.unwrap().items;
    assert_eq!(seen.iter().map(|alarm| alarm.id).collect::<Vec<_>>(), [mine]);
    let query = wire::AlarmQuery {
        search: Some("nothing".to_owned()),
        ..wire::AlarmQuery::default()
    };
    assert!(client.alarms(&query).await.unwrap().items.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_the_wall_alarms_of_others_cannot_be_seen_changed_or_set() {
    let scene = Scene::with(&[("ALARMS__ENABLED", "false")]).await;
    let (own, foreign) = (scene.tenant(0, ENDLESS).await, scene.tenant(0, ENDLESS).await);
    let admin = scene.admin().await;
    for workspace in [own.workspace, foreign.workspace] {
        let alarm = admin.set_alarm(&daily(workspace)).await.unwrap().alarm.id;
        admin.fire_alarm(alarm).await.unwrap();
    }
    let mut transaction = scene.database.pool.begin().await.unwrap();
    let act = "select set_config('role', 'stationmaster_api', true), set_config('stationmaster.workspaces', $1, true)";
    sqlx::query(act)
        .bind(own.workspace.to_string())
        .execute(&mut *transaction)
        .await
        .unwrap();
    for relation in [
        "stationmaster.alarms",
        "stationmaster_internal.alarm_standings",
        "stationmaster.alarm_occurrences",
    ] {
        let query = format!("select count(*) from {relation}");
        let seen: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_one(&mut *transaction)
            .await
            .unwrap();
        assert_eq!(seen, 1, "{relation}");
    }
    let reached = sqlx::query("update stationmaster_internal.alarm_standings set status = 'cancelled'")
        .execute(&mut *transaction)
        .await
        .unwrap();
    assert_eq!(reached.rows_affected(), 1);
    let refused = sqlx::query("select stationmaster.set_alarm($1, delay => '1 hour')")
        .bind(foreign.workspace)
        .execute(&mut *transaction)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("row-level security"), "{refused}");
}
