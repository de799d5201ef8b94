//! Tokens: made, used, limited, revoked; and who may start a server without any.

use std::time::{Duration, Instant};

use jiff::{Timestamp, ToSpan as _};
use reqwest::{Method, StatusCode};
use serde_json::json;
use stationmaster_client::{Client, Error, wire};
use stationmaster_core::access::{Role, Secret};
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, answer, launch, problem};
use crate::support::{TestDatabase, command, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_opens_no_door_of_any_server_within_five_seconds() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    let second = launch(&scene.database, &[("HTTP__RATE_LIMIT", "100000")])
        .start_ready()
        .await;
    let token = scene.token(Role::Viewer, None).await;
    let clients = [
        scene.client(&token),
        Client::builder()
            .token(&token)
            .build(&format!("http://{}", second.address().unwrap()))
            .unwrap(),
    ];
    for client in &clients {
        client.plans().await.unwrap();
    }
    let id = clients[0].own_token().await.unwrap().id;
    scene.admin().await.revoke_token(id).await.unwrap();
    let revoked = Instant::now();
    for client in &clients {
        let mut last_accepted = Duration::ZERO;
        loop {
            let asked = revoked.elapsed();
            match client.plans().await {
                Ok(_) => last_accepted = asked,
                Err(Error::Unauthenticated(problem)) => {
                    assert_eq!(problem.detail.as_deref(), Some("the token was revoked"));
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        println!("last let in {last_accepted:?} after the revocation");
        assert!(last_accepted < Duration::from_secs(5), "{last_accepted:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_makes_sees_and_revokes_no_token_that_may_do_more_than_itself() {
    let scene = Scene::new().await;
    let (own, foreign) = (
        scene.tenant(1, ENDLESS).await.workspace,
        scene.tenant(1, ENDLESS).await.workspace,
    );
    let secret = scene.token(Role::Admin, Some(own)).await;
    let scoped = scene.client(&secret);
    let new = |workspaces: Option<Vec<Uuid>>| wire::NewToken {
        name: format!("t-{}", Uuid::now_v7()),
        role: wire::Role::Operator,
        workspaces,
        expires_at: None,
    };
    for workspaces in [None, Some(vec![foreign]), Some(vec![own, foreign])] {
        let refused = scoped.make_token(&new(workspaces)).await;
        assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    }
    let made = scoped.make_token(&new(Some(vec![own]))).await.unwrap();
    let all = scene.admin().await.make_token(&new(None)).await.unwrap();
    let seen = scoped.tokens(&wire::PageQuery::default()).await.unwrap().items;
    assert!(seen.iter().any(|token| token.id == made.token.id));
    assert!(
        seen.iter()
            .all(|token| token.workspaces.as_deref() == Some(&[own])),
        "{seen:?}"
    );
    assert!(matches!(
        scoped.revoke_token(all.token.id).await,
        Err(Error::NotFound(_))
    ));
    scoped.revoke_token(made.token.id).await.unwrap();
    let refused = scene.client(&made.secret).plans().await;
    assert!(matches!(refused, Err(Error::Unauthenticated(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_use_of_a_token_is_noted_once_a_minute() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Viewer, None).await;
    let client = scene.client(&token);
    client.plans().await.unwrap();
    let id = client.own_token().await.unwrap().id;
    let used = "select count(*) from stationmaster_internal.tokens where last_used_at is not null";
    eventually("the use is noted", async || {
        scene.database.number(used).await == 1
    })
    .await;
    let noted = "select last_used_at::text from stationmaster_internal.tokens where id = $1";
    let read = async || -> String {
        sqlx::query_scalar(noted)
            .bind(id)
            .fetch_one(&scene.database.pool)
            .await
            .unwrap()
    };
    let first = read().await;
    for _ in 0..20 {
        client.plans().await.unwrap();
    }
    assert_eq!(read().await, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_token_is_made_on_the_database_and_opens_the_door() {
    let scene = Scene::new().await;
    let made = command(
        &scene.database,
        &[
            "tokens",
            "create",
            "first",
            "--role",
            "admin",
            "--expires-in",
            "90d",
        ],
    );
    let secret = made["secret"].as_str().unwrap();
    assert_eq!((secret.len(), &secret[..4]), (76, "smt_"));
    let client = scene.client(secret);
    let own = client.own_token().await.unwrap();
    assert_eq!((own.name.as_str(), own.role), ("first", wire::Role::Admin));
    assert!(
        own.created_by.starts_with("cli:") && own.expires_at.is_some(),
        "{own:?}"
    );
    let listed = command(&scene.database, &["tokens", "list"]);
    assert_eq!(
        (&listed[0]["name"], &listed[0]["active"]),
        (&json!("first"), &json!(true))
    );
    assert!(listed[0].get("secret").is_none() && !listed.to_string().contains(&secret[4..60]));
    command(&scene.database, &["tokens", "revoke", "first", "--yes"]);
    eventually("it opens the door no more", async || {
        client.plans().await.is_err()
    })
    .await;
    let again = command(
        &scene.database,
        &["tokens", "create", "first", "--role", "viewer"],
    );
    assert!(
        again["secret"].is_string(),
        "a name is free when its token is revoked"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_this_machine_a_server_starts_only_when_there_is_a_token() {
    let database = TestDatabase::new().await;
    let wide = launch(&database, &[("LISTEN", "0.0.0.0:0")]);
    let mut refused = wide.start();
    let (status, _) = refused.ended().await;
    assert_eq!(status.code(), Some(2), "{}", refused.log());
    assert!(
        refused.log().contains("stationmaster tokens create --role admin"),
        "{}",
        refused.log()
    );
    command(&database, &["tokens", "create", "first", "--role", "admin"]);
    let started = wide.start_listening().await;
    assert!(
        started.log().contains("Tokens travel unencrypted"),
        "{}",
        started.log()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_this_machine_a_server_without_tokens_lets_nobody_in_unless_it_is_open() {
    let scene = Scene::new().await;
    let (status, body) = answer(scene.ask(Method::GET, "/v1/plans", None)).await;
    assert_eq!(
        (status, problem(&body)),
        (StatusCode::UNAUTHORIZED, "unauthenticated")
    );
    assert!(
        scene.server.log().contains("There is no token yet"),
        "{}",
        scene.server.log()
    );

    let open = launch(&scene.database, &[("HTTP__OPEN", "true")])
        .start_ready()
        .await;
    assert!(open.log().contains("Open: whoever reaches"), "{}", open.log());
    let url = format!("http://{}/v1/overview", open.address().unwrap());
    let http = crate::scene::http();
    let (status, body) = answer(http.get(&url)).await;
    assert_eq!((status, &body["open"]), (StatusCode::OK, &json!(true)));
    // Neither a token that is wrong nor a page of another host comes in.
    assert_eq!(
        answer(http.get(&url).bearer_auth("smt_wrong")).await.0,
        StatusCode::UNAUTHORIZED
    );
    let (status, body) = answer(http.get(&url).header("host", "rebound.example")).await;
    assert_eq!(
        (status, problem(&body)),
        (StatusCode::MISDIRECTED_REQUEST, "misdirected")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_makes_none_that_outlives_it() {
    let scene = Scene::new().await;
    let new = |expires_at: Option<Timestamp>| wire::NewToken::<Uuid> {
        name: format!("t-{}", Uuid::now_v7()),
        role: wire::Role::Admin,
        workspaces: None,
        expires_at,
    };
    let end = Timestamp::now() + 1.hour();
    let made = scene.admin().await.make_token(&new(Some(end))).await.unwrap();
    let ending = scene.client(&made.secret);
    for expires_at in [None, Some(end + 1.minute())] {
        let refused = ending.make_token(&new(expires_at)).await;
        assert!(
            matches!(refused, Err(Error::Forbidden(_))),
            "{expires_at:?}: {refused:?}"
        );
    }
    ending.make_token(&new(Some(end - 1.minute()))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_workspace_changes_neither_its_plan_nor_its_limit() {
    let scene = Scene::new().await;
    let own = scene.tenant(3, ENDLESS).await.workspace;
    let secret = scene.token(Role::Admin, Some(own)).await;
    let (scoped, all) = (scene.client(&secret), scene.admin().await);
    let put = async |client: &Client, id: Uuid, body: serde_json::Value| {
        let change: wire::WorkspaceChange = serde_json::from_value(body).unwrap();
        client.put_workspace(id, &change, None).await
    };
    let before = all.workspace(own).await.unwrap();
    for body in [
        json!({ "plan": "ENTERPRISE" }),
        json!({ "max_concurrent": 1000 }),
        json!({ "max_concurrent": null }),
    ] {
        let refused = put(&scoped, own, body.clone()).await;
        assert!(matches!(refused, Err(Error::Forbidden(_))), "{body}: {refused:?}");
    }
    // What is repeated changes nothing; what is a tenant's own it may change.
    let same = json!({ "name": "ours", "plan": before.plan, "max_concurrent": before.max_concurrent, "paused": true });
    let changed = put(&scoped, own, same).await.unwrap();
    assert_eq!(
        (
            changed.name.as_str(),
            changed.paused,
            &changed.plan,
            changed.max_concurrent
        ),
        ("ours", true, &before.plan, before.max_concurrent)
    );
    // Nor by making it anew.
    scoped.delete_workspace(own).await.unwrap();
    let refused = put(&scoped, own, json!({ "plan": "ENTERPRISE" })).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    put(&all, own, json!({ "plan": "ENTERPRISE", "max_concurrent": 7 }))
        .await
        .unwrap();
}

/// Whoever asks the database here waits until the test lets go of its table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_too_many_tokens_that_open_no_door_the_next_are_refused_before_the_database_is_asked() {
    let scene = Scene::with(&[("HTTP__AUTH_FAILURES", "1")]).await;
    let known = scene.token(Role::Viewer, None).await;
    let ask = async |token: &str| answer(scene.ask(Method::GET, "/v1/plans", Some(token))).await.0;
    let guess = async || ask(Secret::generate().expose()).await;
    assert_eq!(ask(&known).await, StatusCode::OK);
    let mut refused = 0;
    while guess().await == StatusCode::UNAUTHORIZED {
        refused += 1;
    }
    assert!(refused >= 1, "{refused}");
    let hold = scene
        .database
        .lock("lock table stationmaster_internal.tokens in access exclusive mode")
        .await;
    for _ in 0..20 {
        assert_eq!(guess().await, StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(
        !scene
            .database
            .is_waited_for("stationmaster_internal.tokens")
            .await
    );
    hold.rollback().await.unwrap();
    assert_eq!(
        ask(&known).await,
        StatusCode::OK,
        "who is known is not held back for a neighbour's guesses"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_another_host_cannot_make_a_browser_post_to_an_open_server() {
    let scene = Scene::with(&[("HTTP__OPEN", "true")]).await;
    let workspace = scene.tenant(1, ENDLESS).await.workspace;
    let pause = format!("/v1/workspaces/{workspace}/pause");
    let ask = async |path: &str, origin: Option<&str>| {
        let request = scene.ask(Method::POST, path, None);
        let request = match origin {
            Some(origin) => request.header("origin", origin),
            None => request,
        };
        answer(request).await.0
    };
    let paused = "select count(*) from stationmaster.workspaces where paused";
    for origin in ["https://somewhere.example", "null", "http://localhost:1", ""] {
        assert_eq!(ask(&pause, Some(origin)).await, StatusCode::FORBIDDEN, "{origin}");
    }
    assert_eq!(scene.database.number(paused).await, 0);
    let own = scene.url("");
    for (path, origin) in [("pause", Some(own.as_str())), ("resume", None)] {
        let path = format!("/v1/workspaces/{workspace}/{path}");
        assert!(ask(&path, origin).await.is_success(), "{origin:?}");
    }
}
