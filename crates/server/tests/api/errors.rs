//! Refusals: each class has its status, its type, and a body that says what to do.

use reqwest::{Method, StatusCode};
use serde_json::json;
use stationmaster_core::access::Role;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, answer, problem};
use crate::support::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_class_of_refusal_is_a_problem_with_a_type_of_its_own() {
    let scene = Scene::with(&[("HTTP__BODY_LIMIT", "4096")]).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let token = scene.token(Role::Admin, None).await;
    let ask = |method: Method, path: &str| scene.ask(method, path, Some(&token));
    let enqueue = json!({ "workspace_id": tenant.workspace, "workflow_definition_id": tenant.workflow });
    let large = json!({ "workspace_id": tenant.workspace, "workflow_definition_id": tenant.workflow, "input": "x".repeat(5000) });
    let nobody = Uuid::now_v7();
    let cases = [
        (ask(Method::GET, "/v1/nothing"), 404, "not-found"),
        (ask(Method::GET, "/nothing"), 404, "not-found"),
        (ask(Method::GET, &format!("/v1/queue/{nobody}")), 404, "not-found"),
        (ask(Method::DELETE, "/v1/queue"), 405, "method-not-allowed"),
        (ask(Method::PUT, "/livez"), 405, "method-not-allowed"),
        (ask(Method::POST, "/v1/executions").json(&large), 413, "too-large"),
        (
            ask(Method::POST, "/v1/executions").body("input"),
            415,
            "unsupported-media-type",
        ),
        (
            ask(Method::POST, "/v1/executions")
                .header("content-type", "text/plain")
                .body("{}"),
            415,
            "unsupported-media-type",
        ),
        (
            ask(Method::POST, "/v1/executions")
                .header("content-type", "application/json")
                .body("{"),
            400,
            "malformed",
        ),
        (
            ask(Method::POST, "/v1/executions")
                .header("content-type", "application/json")
                .body(format!("{enqueue} x")),
            400,
            "malformed",
        ),
        (
            ask(Method::POST, "/v1/executions").json(&json!({})),
            422,
            "invalid",
        ),
        (ask(Method::GET, "/v1/queue/0190"), 422, "invalid"),
        (ask(Method::GET, "/v1/queue?limit=0"), 422, "invalid"),
        (ask(Method::GET, "/v1/queue?limit=501"), 422, "invalid"),
        (ask(Method::GET, "/v1/queue?stattus=PENDING"), 422, "invalid"),
        (ask(Method::GET, "/v1/queue?status=LOST"), 422, "invalid"),
        (ask(Method::GET, "/v1/queue?search=%00"), 422, "invalid"),
        (ask(Method::GET, "/v1/queue?cursor=abc"), 400, "bad-cursor"),
        (
            ask(Method::GET, "/v1/events").header("last-event-id", "x"),
            422,
            "invalid",
        ),
        (
            ask(Method::PUT, &format!("/v1/workspaces/{nobody}")).json(&json!({ "plan": "GOLD" })),
            422,
            "invalid",
        ),
        (
            ask(Method::PUT, &format!("/v1/workspaces/{nobody}")).json(&json!({ "max_concurrent": -1 })),
            422,
            "invalid",
        ),
        (
            ask(Method::POST, "/v1/executions")
                .header("idempotency-key", "a b")
                .json(&enqueue),
            422,
            "invalid",
        ),
        (
            ask(Method::PUT, &format!("/v1/workspaces/{}", tenant.workspace))
                .header("if-match", "\"old\"")
                .json(&json!({})),
            412,
            "precondition-failed",
        ),
    ];
    for (request, status, name) in cases {
        let request = request.build().unwrap();
        let asked = format!("{} {}", request.method(), request.url());
        let (answered, body) =
            answer(reqwest::RequestBuilder::from_parts(crate::scene::http(), request)).await;
        assert_eq!(
            (answered.as_u16(), problem(&body)),
            (status, name),
            "{asked}: {body}"
        );
        assert!(!body["detail"].as_str().unwrap().is_empty(), "{asked}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_field_is_named_and_a_wrong_method_tells_the_right_ones() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let id = Uuid::now_v7();
    let bulk = json!({ "items": [{ "workspace_id": id, "workflow_definition_id": id, "priority": "high" }] });
    let (_, body) = answer(
        scene
            .ask(Method::POST, "/v1/executions/bulk", Some(&token))
            .json(&bulk),
    )
    .await;
    assert_eq!(body["errors"][0]["field"], "/items/0/priority", "{body}");
    let run = json!({ "workspace_id": id, "workflow_definition_id": id });
    let traced = json!({ "workspace_id": id, "workflow_definition_id": id, "traceparent": "" });
    let signal = json!({ "project": "shop", "name": "paid" });
    let endless = json!({ "project": "shop", "name": "paid", "task_queue": "x".repeat(201) });
    let unkept = json!({ "project": "shop", "name": "paid", "payload": "a\u{0}b" });
    for (path, body, field) in [
        ("/v1/executions", traced.clone(), "/traceparent"),
        (
            "/v1/executions/bulk",
            json!({ "items": [run, traced] }),
            "/items/1/traceparent",
        ),
        ("/v1/signals", endless.clone(), "/task_queue"),
        (
            "/v1/signals/bulk",
            json!({ "items": [&signal, endless] }),
            "/items/1/task_queue",
        ),
        ("/v1/signals", unkept.clone(), "/payload"),
        (
            "/v1/signals/bulk",
            json!({ "items": [&signal, unkept] }),
            "/items",
        ),
    ] {
        let (status, body) = answer(scene.ask(Method::POST, path, Some(&token)).json(&body)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {body}");
        assert_eq!(body["errors"][0]["field"], field, "{path}: {body}");
    }
    let (_, body) = answer(
        scene
            .ask(Method::POST, "/v1/queue/retry", Some(&token))
            .json(&json!({ "colour": 1 })),
    )
    .await;
    assert_eq!(body["errors"][0]["field"], "/colour", "{body}");
    // All of them at once, in words for people.
    let many = json!({ "workspace_id": id, "priority": "high", "input": {}, "colour": 1, "run_at": true });
    let (status, body) = answer(
        scene
            .ask(Method::POST, "/v1/executions", Some(&token))
            .json(&many),
    )
    .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let mut pointers: Vec<&str> = body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    pointers.sort_unstable();
    assert_eq!(
        pointers,
        ["/colour", "/priority", "/run_at", "/workflow_definition_id"],
        "{body}"
    );
    assert!(!body.to_string().contains(" at line "), "{body}");
    let path = "/v1/queue?limit=many&status=waiting&colour=red";
    let (_, body) = answer(scene.ask(Method::GET, path, Some(&token))).await;
    let fields: Vec<&str> = body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["status", "limit", "colour"], "{body}");
    for filter in ["status=pending", "status=Pending", "status=PENDING"] {
        let (status, body) =
            answer(scene.ask(Method::GET, &format!("/v1/queue?{filter}"), Some(&token))).await;
        assert_eq!(status, StatusCode::OK, "{filter}: {body}");
    }
    let response = scene
        .ask(Method::PATCH, "/v1/queue", Some(&token))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert!(
        response.headers()["allow"].to_str().unwrap().contains("GET"),
        "{:?}",
        response.headers()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_named_by_its_caller_or_by_us() {
    let scene = Scene::new().await;
    let response = scene
        .ask(Method::GET, "/v1/queue", None)
        .header("x-request-id", "trace-7")
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["x-request-id"], "trace-7");
    assert_eq!(
        response.headers()["www-authenticate"],
        "Bearer realm=\"stationmaster\""
    );
    let response = scene
        .ask(Method::GET, "/livez", None)
        .header("x-request-id", "a b")
        .send()
        .await
        .unwrap();
    assert_ne!(response.headers()["x-request-id"], "a b");
}

/// Sends these bytes and reads until the server closes.
async fn raw(scene: &Scene, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(&scene.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_request_at_all_is_refused_with_a_problem_too() {
    let scene = Scene::new().await;
    let many = format!("GET /livez HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(70));
    let pipelined = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\nnonsense\r\n\r\n";
    let cases = [
        ("nonsense\r\n\r\n", 400, "malformed"),
        ("GET /livez HTTP/7.0\r\n\r\n", 400, "malformed"),
        ("GET /livez HTTP/1.1\r\nbad header\r\n\r\n", 400, "malformed"),
        (many.as_str(), 431, "head-too-large"),
        (pipelined, 400, "malformed"),
    ];
    for (bytes, status, name) in cases {
        let answer = raw(&scene, bytes.as_bytes()).await;
        let (head, body) = answer.rsplit_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("HTTP/1.1 {status} ")),
            "{bytes:?}: {answer}"
        );
        assert!(head.contains("application/problem+json"), "{bytes:?}: {answer}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            (problem(&body), &body["status"]),
            (name, &json!(status)),
            "{bytes:?}"
        );
        let id = format!("x-request-id: {}", body["request_id"].as_str().unwrap());
        assert!(head.contains(&id), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_arrive_is_given_up() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Operator, None).await;
    let mut stream = TcpStream::connect(&scene.address).await.unwrap();
    let head = format!(
        "POST /v1/executions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{",
        scene.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let mut some = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains("request-timeout") {
        let read = stream.read(&mut some).await.unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&some[..read]);
    }
    assert!(
        answer.starts_with(b"HTTP/1.1 408"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_asks_too_much_is_told_when_to_come_back_and_others_are_not_held_up() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "3"), ("HTTP__AUTH_FAILURES", "4")]).await;
    let token = scene.token(Role::Viewer, None).await;
    let mut limited = None;
    for _ in 0..200 {
        let response = scene
            .ask(Method::GET, "/v1/plans", Some(&token))
            .send()
            .await
            .unwrap();
        assert_eq!(response.headers()["ratelimit-limit"], "3");
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            limited = Some(response);
            break;
        }
        assert_eq!(response.status(), StatusCode::OK);
    }
    let limited = limited.expect("two hundred requests at once are more than three a second");
    assert_eq!(limited.headers()["ratelimit-remaining"], "0");
    assert!(
        limited.headers()["retry-after"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            >= 1
    );
    let other = scene.token(Role::Viewer, None).await;
    let (status, _) = answer(scene.ask(Method::GET, "/v1/plans", Some(&other))).await;
    assert_eq!(status, StatusCode::OK);

    // Guesses from one address are slowed down; a token that is right still opens the door there.
    let mut slowed = false;
    for _ in 0..50 {
        let (status, _) = answer(scene.ask(Method::GET, "/v1/plans", Some("smt_guess"))).await;
        slowed |= status == StatusCode::TOO_MANY_REQUESTS;
    }
    assert!(slowed);
    let third = scene.token(Role::Viewer, None).await;
    let (status, _) = answer(scene.ask(Method::GET, "/v1/plans", Some(&third))).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_cannot_run_are_refused_when_the_version_is_made_and_all_of_them_are_named() {
    let scene = Scene::new().await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let token = scene.token(Role::Admin, None).await;
    let path = format!("/v1/workflows/{}/versions", tenant.workflow);
    let nodes =
        json!([{ "id": "a", "type": "htp" }, { "id": "b" }, { "id": "c", "type": "wait", "seconds": "5" }]);
    let request = scene.ask(Method::POST, &path, Some(&token));
    let (status, body) = answer(request.json(&json!({ "workflow": { "nodes": nodes } }))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let fields: Vec<&str> = body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert_eq!(
        fields,
        ["/workflow/nodes/0/type", "/workflow/nodes/2/seconds"],
        "{body}"
    );
    let words = body["errors"][0]["detail"].as_str().unwrap();
    assert!(words.ends_with("did you mean \"http\"?"), "{words}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_take_several_workspaces_and_none_that_the_token_may_not_see() {
    let scene = Scene::new().await;
    let (one, two, three) = (
        scene.tenant(0, ENDLESS).await,
        scene.tenant(0, ENDLESS).await,
        scene.tenant(0, ENDLESS).await,
    );
    let items = [
        scene.item(one).await,
        scene.item(two).await,
        scene.item(three).await,
    ];
    let token = scene.token(Role::Viewer, None).await;
    let listed = async |query: String, token: &str| {
        let (status, body) = answer(scene.ask(Method::GET, &format!("/v1/queue?{query}"), Some(token))).await;
        let found = body["items"].as_array().cloned().unwrap_or_default();
        let ids: Vec<Uuid> = found
            .iter()
            .map(|item| item["id"].as_str().unwrap().parse().unwrap())
            .collect();
        (status, ids)
    };
    let (one, two) = (one.workspace, two.workspace);
    let both = vec![items[1], items[0]];
    assert_eq!(
        listed(format!("workspace_id={one},{two}"), &token).await,
        (StatusCode::OK, both.clone())
    );
    assert_eq!(
        listed(
            format!("workspace_id={one}&workspace_id={two}&status=pending,failed"),
            &token
        )
        .await,
        (StatusCode::OK, both)
    );
    let scoped = scene.token(Role::Viewer, Some(one)).await;
    assert_eq!(
        listed(format!("workspace_id={one},{two}"), &scoped).await.0,
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        listed("workspace_id=".to_owned(), &token).await.0,
        StatusCode::NOT_FOUND,
        "none is not all"
    );
    assert_eq!(
        listed(format!("workspace_id={one},"), &token).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_connections_are_all_in_use_says_that_it_is_busy() {
    let scene = Scene::with(&[("HTTP__DATABASE_POOL", "1")]).await;
    let token = scene.token(Role::Admin, None).await;
    let mut others = scene.database.pool.begin().await.unwrap();
    sqlx::query("lock table stationmaster.workspaces in access exclusive mode")
        .execute(&mut *others)
        .await
        .unwrap();
    let waits = tokio::spawn(scene.ask(Method::GET, "/v1/workspaces", Some(&token)).send());
    let query =
        "select count(*) from pg_locks where not granted and relation = 'stationmaster.workspaces'::regclass";
    eventually("it waits, with the one connection that there is", async || {
        sqlx::query_scalar::<_, i64>(query)
            .fetch_one(&scene.database.pool)
            .await
            .unwrap()
            == 1
    })
    .await;
    let response = scene
        .ask(Method::GET, "/v1/plans", Some(&token))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
    let body: serde_json::Value = response.json().await.unwrap();
    assert!(
        body["detail"].as_str().unwrap().starts_with("the server is busy"),
        "{body}"
    );
    others.rollback().await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap().status(), StatusCode::OK);
}
