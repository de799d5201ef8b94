//! What the client makes of servers that fail: what is repeated, what is not, and what the caller is told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod in_process;
mod script;

use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use script::{Line, Script, problem};
use serde_json::json;
use stationmaster_client::wire::{
    AuditQuery, BulkCancel, Enqueue, EventQuery, LockRequest, NewToken, Role, WorkspaceChange,
};
use stationmaster_client::{Client, Error, Locked, Retries, Told};
use uuid::Uuid;

fn plans() -> Line {
    Line::Say(200, "", r#"{"items": []}"#.to_owned())
}

fn away() -> Line {
    Line::Say(503, "", problem(503, "unavailable"))
}

fn enqueued() -> Line {
    Line::Say(
        202,
        "",
        json!({ "id": Uuid::now_v7(), "duplicate": false }).to_string(),
    )
}

fn workspace() -> Line {
    let body = json!({ "id": Uuid::now_v7(), "name": "north", "plan": "FREE", "max_concurrent": null, "limit": 1,
        "weight": 1.0, "paused": false, "active": 0, "ready": 0, "created_at": "2026-03-01T12:00:00Z",
        "updated_at": "2026-03-01T12:00:00Z" });
    Line::Say(200, "", body.to_string())
}

fn token() -> NewToken {
    NewToken {
        name: "a".to_owned(),
        role: Role::Viewer,
        workspaces: None,
        expires_at: None,
    }
}

#[tokio::test]
async fn reading_is_repeated_until_it_succeeds() {
    let script = Script::new(vec![away(), Line::Hang, away(), plans()]).await;
    assert!(script.client.plans().await.unwrap().is_empty());
    assert_eq!(script.asked().len(), 4);
}

#[tokio::test]
async fn tries_have_an_end_and_the_last_error_is_told() {
    let script = Script::new(vec![away(); 9]).await;
    let error = script.client.plans().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(script.asked().len(), 5);
}

#[tokio::test]
async fn every_try_of_a_request_carries_the_same_key_and_another_request_another() {
    let script = Script::new(vec![Line::Hang, away(), enqueued(), enqueued()]).await;
    let request = Enqueue::new(Uuid::now_v7(), Uuid::now_v7());
    script.client.enqueue(&request).await.unwrap();
    script.client.enqueue(&request).await.unwrap();
    let keys = script.header("idempotency-key");
    assert!(keys[0].is_some());
    assert_eq!((&keys[0], &keys[0]), (&keys[1], &keys[2]));
    assert_ne!(keys[2], keys[3]);
}

#[tokio::test]
async fn a_key_of_the_callers_own_is_used_as_it_is() {
    let script = Script::new(vec![
        Line::Hang,
        enqueued(),
        Line::Say(
            200,
            "",
            json!({ "items": 0, "more": false, "as_of": "2026-01-31T09:30:00Z", "dry_run": true })
                .to_string(),
        ),
    ])
    .await;
    let request = Enqueue {
        idempotency_key: Some("night-1".to_owned()),
        ..Enqueue::new(Uuid::now_v7(), Uuid::now_v7())
    };
    script.client.enqueue(&request).await.unwrap();
    let filter: BulkCancel = BulkCancel {
        dry_run: true,
        ..BulkCancel::default()
    };
    script.client.cancel_all(&filter, Some("mine")).await.unwrap();
    let keys = script.header("idempotency-key");
    assert_eq!(
        keys,
        [None, None, Some("mine".to_owned())],
        "the body names the first one"
    );
    assert!(script.asked()[1].body.contains("night-1"));
}

#[tokio::test]
async fn what_could_happen_twice_is_not_repeated() {
    let script = Script::new(vec![Line::Hang, plans()]).await;
    let error = script.client.make_token(&token()).await.unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert_eq!(script.asked().len(), 1);
    assert_eq!(script.header("idempotency-key"), [None]);

    let script = Script::new(vec![Line::Hang, workspace()]).await;
    let change = WorkspaceChange::default();
    let error = script
        .client
        .put_workspace(Uuid::now_v7(), &change, Some("\"tag\""))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert_eq!(
        script.asked().len(),
        1,
        "its own change would not be the one that was expected"
    );
}

#[tokio::test]
async fn what_was_not_let_in_is_repeated_whatever_it_is() {
    let busy = || Line::Say(429, "retry-after: 1\r\n", problem(429, "rate-limited"));
    let made = json!({ "secret": "smt_x", "token": { "id": Uuid::now_v7(), "name": "a", "hint": "x", "role": "viewer",
        "created_at": "2026-03-01T12:00:00Z", "created_by": "me", "active": true } });
    let script = Script::new(vec![busy(), Line::Say(201, "", made.to_string())]).await;
    let began = Instant::now();
    script.client.make_token(&token()).await.unwrap();
    assert!(
        began.elapsed() >= Duration::from_secs(1),
        "the server asked for a second"
    );
}

#[tokio::test]
async fn writing_the_same_again_is_repeated() {
    let script = Script::new(vec![Line::Hang, workspace()]).await;
    let change = WorkspaceChange::default();
    script
        .client
        .put_workspace(Uuid::now_v7(), &change, None)
        .await
        .unwrap();
    assert_eq!(script.asked()[1].method, "PUT");
}

#[tokio::test]
async fn what_a_lost_try_has_deleted_is_deleted() {
    let gone = || Line::Say(404, "", problem(404, "not-found"));
    let script = Script::new(vec![Line::Hang, gone(), gone()]).await;
    script.client.delete_workspace(Uuid::now_v7()).await.unwrap();
    let error = script.client.delete_workspace(Uuid::now_v7()).await.unwrap_err();
    assert!(
        matches!(error, Error::NotFound(_)),
        "nobody had deleted it: {error:?}"
    );
}

#[tokio::test]
async fn refusals_are_told_and_not_repeated() {
    for (status, name) in [
        (400, "malformed"),
        (403, "forbidden"),
        (409, "conflict"),
        (422, "invalid"),
        (500, "internal"),
    ] {
        let script = Script::new(vec![Line::Say(status, "", problem(status, name)), plans()]).await;
        let error = script.client.plans().await.unwrap_err();
        assert_eq!(error.name(), Some(name));
        assert_eq!(error.fields()[0].field, "/name");
        assert_eq!(error.problem().unwrap().request_id.as_deref(), Some("r-1"));
        assert_eq!(error.to_string(), "the words (/name: it is empty)");
        assert_eq!(script.asked().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_request_that_is_still_under_way_is_waited_for() {
    let under_way = Line::Say(409, "retry-after: 1\r\n", problem(409, "idempotency-under-way"));
    let acquired = json!({ "name": "night", "token": 7, "holder": "me#1", "until": "2026-03-01T12:00:00Z" });
    let script = Script::new(vec![
        Line::Hang,
        under_way,
        Line::Say(201, "", acquired.to_string()),
    ])
    .await;
    let request = LockRequest {
        at_most: 60.0,
        at_least: 0.0,
        owner: None,
    };
    let locked = script.client.acquire_lock("night", &request).await.unwrap();
    assert!(matches!(locked, Locked::Acquired(lock) if lock.token == 7));
}

#[tokio::test]
async fn an_answer_of_somebody_in_between_is_told_as_such() {
    let script = Script::new(vec![Line::Say(413, "", "<html>too large</html>".to_owned())]).await;
    let error = script.client.plans().await.unwrap_err();
    assert!(
        error.to_string().contains("not one of Stationmaster's"),
        "{error}"
    );
    let script = Script::new(vec![Line::Say(200, "", "<html>".to_owned())]).await;
    assert!(matches!(script.client.plans().await, Err(Error::Answer(_))));
}

#[tokio::test]
async fn nobody_there_is_told_and_the_token_is_not() {
    let free = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let client = Client::builder().token("smt_planted").retries(Retries::none());
    let client = client.build(&format!("http://{free}")).unwrap();
    let error = client.plans().await.unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    let told = format!("{error} {error:?} {client:?}");
    assert!(told.contains("refused") && !told.contains("planted"), "{told}");
}

#[tokio::test]
async fn a_list_is_read_page_after_page() {
    let entry = |id: i64| {
        json!({ "id": id, "at": "2026-03-01T12:00:00Z", "actor": "me", "action": "plan.change", "workspace_id": null,
            "subject": "PRO", "detail": {} })
    };
    let page = |ids: &[i64], next: Option<&str>| {
        let items: Vec<_> = ids.iter().map(|id| entry(*id)).collect();
        Line::Say(
            200,
            "",
            json!({ "items": items, "next_cursor": next }).to_string(),
        )
    };
    let script = Script::new(vec![
        page(&[9, 8], Some("c1")),
        page(&[], Some("c2")),
        away(),
        page(&[7], None),
    ])
    .await;
    let lines: Vec<_> = script
        .client
        .all_audit(AuditQuery::default())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(lines.iter().map(|line| line.id).collect::<Vec<_>>(), [9, 8, 7]);
    let paths: Vec<String> = script.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(
        paths,
        [
            "/v1/audit?limit=200",
            "/v1/audit?cursor=c1&limit=200",
            "/v1/audit?cursor=c2&limit=200",
            "/v1/audit?cursor=c2&limit=200"
        ]
    );
}

#[tokio::test]
async fn events_go_on_where_they_ended() {
    let event = |position: i64| {
        format!(
            "id: {position}\nevent: queue.retried\ndata: {{\"position\": {position}, \"at\": \"2026-03-01T12:00:00Z\", \
             \"kind\": \"queue.retried\", \"workspace_id\": null, \"detail\": {{}}}}\n\n"
        )
    };
    let hello = "id: 4\nevent: hello\ndata: {\"position\": 4}\n\n".to_owned();
    let script = Script::new(vec![
        Line::Say(200, "", format!("{hello}{}", event(5))),
        Line::Hang,
        away(),
        Line::Say(200, "", event(6)),
        Line::Say(401, "", problem(401, "unauthenticated")),
    ])
    .await;
    let mut events = script.client.listen(EventQuery::default(), None);
    assert!(matches!(events.next().await.unwrap(), Told::Hello(_)));
    for expected in [5, 6] {
        let told = events.next().await.unwrap();
        assert!(
            matches!(&told, Told::Event(event) if event.position == expected),
            "{told:?}"
        );
    }
    assert_eq!(events.position(), Some(6));
    let end = events.next().await;
    assert!(matches!(end, Err(Error::Unauthenticated(_))), "{end:?}");
    let last = script.header("last-event-id");
    let after = |position: &str| Some(position.to_owned());
    assert_eq!(last, [None, after("5"), after("5"), after("5"), after("6")]);
}
