//! Repeats: a request under its key is carried out once and answered alike.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use stationmaster_core::access::Role;

use crate::scene::{ENDLESS, Scene, Tenant, answer, launch, problem};
use crate::support::eventually;

fn enqueue(tenant: Tenant, priority: i32) -> Value {
    json!({ "workspace_id": tenant.workspace, "workflow_definition_id": tenant.workflow, "priority": priority })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_repeated_under_its_key_gives_the_first_item() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Operator, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let ask = |priority: i32| {
        let request = scene.ask(Method::POST, "/v1/executions", Some(&token));
        request
            .header("idempotency-key", "order-17")
            .json(&enqueue(tenant, priority))
    };
    let response = ask(1).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let first: Value = response.json().await.unwrap();
    assert_eq!(location, format!("/v1/queue/{}", first["id"].as_str().unwrap()));
    let (status, again) = answer(ask(1)).await;
    assert_eq!(
        (status, &again["id"], &again["duplicate"]),
        (StatusCode::ACCEPTED, &first["id"], &json!(true))
    );
    let (status, other) = answer(ask(2)).await;
    assert_eq!(
        (status, problem(&other)),
        (StatusCode::CONFLICT, "idempotency-conflict")
    );
    let both = ask(1).json(&json!({ "workspace_id": tenant.workspace, "workflow_definition_id": tenant.workflow, "idempotency_key": "another" }));
    assert_eq!(answer(both).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        scene
            .database
            .number("select count(*) from stationmaster_internal.queue_items")
            .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_post_repeated_under_its_key_is_answered_and_not_done_again() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let path = format!("/v1/workflows/{}/versions", tenant.workflow);
    let ask = |token: &str, node: &str| {
        let request = scene
            .ask(Method::POST, &path, Some(token))
            .header("idempotency-key", "release-9");
        request.json(&json!({ "workflow": { "nodes": [{ "id": node, "type": "noop" }] } }))
    };
    // A refusal keeps no key: what was wrong can be mended under it.
    let (status, _) = answer(ask(&token, "")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let (status, first) = answer(ask(&token, "a")).await;
    assert_eq!((status, &first["version"]), (StatusCode::CREATED, &json!(2)));
    let response = ask(&token, "a").send().await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["idempotency-replayed"]),
        (StatusCode::CREATED, &"true".parse().unwrap())
    );
    assert_eq!(response.json::<Value>().await.unwrap(), first);
    let (status, other) = answer(ask(&token, "b")).await;
    assert_eq!(
        (status, problem(&other)),
        (StatusCode::CONFLICT, "idempotency-conflict")
    );
    // Another token has keys of its own.
    let other = scene.token(Role::Admin, None).await;
    let (status, made) = answer(ask(&other, "a")).await;
    assert_eq!((status, &made["version"]), (StatusCode::CREATED, &json!(3)));
    let old = "update stationmaster_internal.api_answers set created_at = now() - interval '25 hours'";
    sqlx::query(old).execute(&scene.database.pool).await.unwrap();
    let (_, made) = answer(ask(&token, "a")).await;
    assert_eq!(made["version"], json!(4), "after a day the key is new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_repeats_at_once_one_is_carried_out() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let path = format!("/v1/workflows/{}/versions", tenant.workflow);
    let ask = || {
        let request = scene
            .ask(Method::POST, &path, Some(&token))
            .header("idempotency-key", "at-once");
        answer(request.json(&json!({ "workflow": { "nodes": [{ "id": "a", "type": "noop" }] } })))
    };
    let answers = futures::future::join_all((0..12).map(|_| ask())).await;
    for (status, body) in &answers {
        let fine = *status == StatusCode::CREATED || problem(body) == "idempotency-under-way";
        assert!(fine, "{status} {body}");
    }
    assert!(answers.iter().any(|(status, _)| *status == StatusCode::CREATED));
    let versions = "select count(*) from stationmaster.workflow_definition_versions";
    assert_eq!(
        scene.database.number(versions).await,
        2,
        "the tenant's first, and one"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_secret_of_a_token_is_kept_nowhere() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let ask = || {
        let request = scene
            .ask(Method::POST, "/v1/tokens", Some(&token))
            .header("idempotency-key", "once");
        answer(request.json(&json!({ "name": "deploy", "role": "viewer" })))
    };
    let (status, made) = ask().await;
    assert_eq!(status, StatusCode::CREATED);
    let secret = made["secret"].as_str().unwrap();
    let (status, again) = ask().await;
    assert_eq!((status, problem(&again)), (StatusCode::CONFLICT, "conflict"));
    let kept = "select count(*) from stationmaster_internal.api_answers";
    assert_eq!(scene.database.number(kept).await, 0);
    let dump = "select coalesce(string_agg(t::text, ' '), '') || coalesce((select string_agg(a::text, ' ') from stationmaster.audit a), '')
                || coalesce((select string_agg(e::text, ' ') from stationmaster_internal.event_inbox e), '') from stationmaster_internal.tokens t";
    let dump: String = sqlx::query_scalar(dump)
        .fetch_one(&scene.database.pool)
        .await
        .unwrap();
    assert!(!dump.contains(&secret[4..60]), "the secret is in the database");
}

/// A request under its key that has been carried out and whose answer is not written down yet.
struct Between {
    scene: Scene,
    token: String,
    path: String,
    /// As long as it lives, no answer is written down.
    hold: Option<sqlx::Transaction<'static, sqlx::Postgres>>,
    request: tokio::task::JoinHandle<reqwest::Result<reqwest::Response>>,
}

impl Between {
    async fn new() -> Self {
        let scene = Scene::new().await;
        let token = scene.token(Role::Admin, None).await;
        let tenant = scene.tenant(0, ENDLESS).await;
        let path = format!("/v1/workflows/{}/versions", tenant.workflow);
        let (versions, answers) = (
            "stationmaster.workflow_definition_versions",
            "stationmaster_internal.api_answers",
        );
        let work = scene
            .database
            .lock("lock table stationmaster.workflow_definition_versions in share row exclusive mode")
            .await;
        let request = tokio::spawn(ask_under_its_key(&scene, &path, &token).send());
        let waited_for = async |table: &str| {
            eventually("it waits", async || scene.database.is_waited_for(table).await).await;
        };
        waited_for(versions).await;
        let hold = scene
            .database
            .lock("lock table stationmaster_internal.api_answers in share row exclusive mode")
            .await;
        work.rollback().await.unwrap();
        waited_for(answers).await;
        let between = Self {
            scene,
            token,
            path,
            hold: Some(hold),
            request,
        };
        assert_eq!(between.versions().await, 2, "it is carried out");
        between
    }

    async fn versions(&self) -> i64 {
        let versions = "select count(*) from stationmaster.workflow_definition_versions";
        self.scene.database.number(versions).await
    }

    async fn later(&self, by: &str) {
        let later =
            "update stationmaster_internal.api_answers set created_at = created_at - $1::text::interval";
        let later = sqlx::query(later).bind(by);
        later.execute(&self.scene.database.pool).await.unwrap();
    }
}

fn ask_under_its_key(scene: &Scene, path: &str, token: &str) -> RequestBuilder {
    let request = scene.ask(Method::POST, path, Some(token));
    request
        .header("idempotency-key", "release-9")
        .json(&json!({ "workflow": { "nodes": [{ "id": "a", "type": "noop" }] } }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_before_the_answer_is_written_down_finds_it_under_the_key() {
    let mut between = Between::new().await;
    between.request.abort();
    assert!((&mut between.request).await.unwrap_err().is_cancelled());
    // Long enough for the server to notice that nobody is there any more.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let hold = between.hold.take().unwrap();
    hold.rollback().await.unwrap();
    let kept = "select count(*) from stationmaster_internal.api_answers where status = 201";
    eventually("the answer is kept", async || {
        between.scene.database.number(kept).await == 1
    })
    .await;
    let again = ask_under_its_key(&between.scene, &between.path, &between.token);
    let again = again.send().await.unwrap();
    assert_eq!(
        (again.status(), &again.headers()["idempotency-replayed"]),
        (StatusCode::CREATED, &"true".parse().unwrap())
    );
    assert_eq!(between.versions().await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_its_server_did_not_live_to_answer_is_never_carried_out_again() {
    let mut between = Between::new().await;
    between.scene.server.kill();
    assert!((&mut between.request).await.unwrap().is_err());
    let hold = between.hold.take().unwrap();
    // The server's last statement may wait for it still, and then find nobody to tell.
    let ended = "select count(pg_terminate_backend(pid)) from pg_locks
                 where not granted and relation = 'stationmaster_internal.api_answers'::regclass";
    between.scene.database.number(ended).await;
    eventually("nobody waits any more", async || {
        let waits = between
            .scene
            .database
            .is_waited_for("stationmaster_internal.api_answers");
        !waits.await
    })
    .await;
    hold.rollback().await.unwrap();
    between.scene.server = launch(&between.scene.database, &[]).start_ready().await;
    between.scene.address = between.scene.server.address().unwrap();
    let again = async || answer(ask_under_its_key(&between.scene, &between.path, &between.token)).await;
    let (status, body) = again().await;
    assert_eq!(
        (status, problem(&body)),
        (StatusCode::CONFLICT, "idempotency-under-way")
    );
    between.later("2 minutes").await;
    let (status, body) = again().await;
    assert_eq!(
        (status, problem(&body)),
        (StatusCode::CONFLICT, "idempotency-under-way")
    );
    assert!(
        body["detail"].as_str().unwrap().contains("take a new key"),
        "{body}"
    );
    assert_eq!(between.versions().await, 2);
    between.later("1 day").await;
    assert_eq!(again().await.0, StatusCode::CREATED, "after a day the key is new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_broke_keeps_its_key_unless_it_is_certain_that_nothing_was_done() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let path = format!("/v1/workflows/{}/versions", tenant.workflow);
    let ask = || ask_under_its_key(&scene, &path, &token);
    let run = async |statement: &'static str| {
        sqlx::raw_sql(statement)
            .execute(&scene.database.pool)
            .await
            .unwrap();
    };
    // The database itself says no.
    run("create function broken() returns trigger language plpgsql as $$ begin raise exception 'broken'; end $$;
         create trigger broken before insert on stationmaster.workflow_definition_versions for each row execute function broken()")
    .await;
    assert_eq!(answer(ask()).await.0, StatusCode::INTERNAL_SERVER_ERROR);
    run("drop function broken cascade").await;

    // The connection is lost on the way, perhaps after the commit.
    let versions = "stationmaster.workflow_definition_versions";
    let hold = scene
        .database
        .lock("lock table stationmaster.workflow_definition_versions in share row exclusive mode")
        .await;
    let request = tokio::spawn(ask().send());
    eventually("it waits", async || scene.database.is_waited_for(versions).await).await;
    let lost = "select count(pg_terminate_backend(pid)) from pg_locks
                where not granted and relation = 'stationmaster.workflow_definition_versions'::regclass";
    assert_eq!(scene.database.number(lost).await, 1);
    assert_eq!(
        request.await.unwrap().unwrap().status(),
        StatusCode::SERVICE_UNAVAILABLE
    );
    hold.rollback().await.unwrap();
    let (status, body) = answer(ask()).await;
    assert_eq!(
        (status, problem(&body)),
        (StatusCode::CONFLICT, "idempotency-under-way")
    );
}
