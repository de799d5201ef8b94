//! The stream of events: nothing is lost over resumes and late commits, nothing is shown that is not to be seen.

use nix::sys::signal::Signal;
use stationmaster_client::wire::{self, EventQuery};
use stationmaster_client::{EventStream, Told};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, insert_event};
use crate::support::{PATIENCE, eventually};

async fn next(stream: &mut EventStream) -> Told {
    let told = tokio::time::timeout(PATIENCE, stream.next())
        .await
        .expect("something is told in time");
    told.unwrap().expect("the stream goes on")
}

/// The next event's position and kind.
async fn event(stream: &mut EventStream) -> (i64, String) {
    match next(stream).await {
        Told::Event(event) => (event.position, event.kind),
        other => panic!("{other:?} is no event"),
    }
}

async fn hello(stream: &mut EventStream) -> i64 {
    match next(stream).await {
        Told::Hello(hello) => hello.position,
        other => panic!("{other:?} is no greeting"),
    }
}

fn queue_only() -> EventQuery {
    EventQuery {
        family: Some("queue".to_owned()),
        ..EventQuery::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_commits_late_is_told_late_and_lost_by_no_resume() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let workspace = scene.tenant(1, ENDLESS).await.workspace;
    let mut live = client.events(&queue_only(), None).await.unwrap();
    let start = hello(&mut live).await;

    // The first to write is the last to commit.
    let mut late = scene.database.pool.begin().await.unwrap();
    insert_event(&mut *late, workspace, "written_first").await;
    scene.happens(workspace, "committed_first").await;
    let (position, kind) = event(&mut live).await;
    assert_eq!(kind, "queue.committed_first");
    late.commit().await.unwrap();
    let (later, kind) = event(&mut live).await;
    assert_eq!(kind, "queue.written_first");
    assert!(later > position);

    // Whoever had heard only the first hears the second when it comes back, and nothing twice.
    let mut resumed = client.events(&queue_only(), Some(position)).await.unwrap();
    assert_eq!(hello(&mut resumed).await, position);
    assert_eq!(
        event(&mut resumed).await,
        (later, "queue.written_first".to_owned())
    );
    let mut from_the_start = client.events(&queue_only(), Some(start)).await.unwrap();
    hello(&mut from_the_start).await;
    assert_eq!(event(&mut from_the_start).await.0, position);
    assert_eq!(event(&mut from_the_start).await.0, later);
    scene.happens(workspace, "next").await;
    for stream in [&mut live, &mut resumed, &mut from_the_start] {
        assert_eq!(event(stream).await.1, "queue.next");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_comes_and_goes_under_load_hears_everything_once_in_order() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    let client = scene.admin().await;
    let workspace = scene.tenant(1, ENDLESS).await.workspace;
    let mut stream = client.events(&queue_only(), None).await.unwrap();
    let mut position = hello(&mut stream).await;
    let writers = 4;
    let each = 150;
    let mut tasks = Vec::new();
    for writer in 0..writers {
        let pool = scene.database.pool.clone();
        tasks.push(tokio::spawn(async move {
            for number in 0..each {
                let mut transaction = pool.begin().await.unwrap();
                insert_event(&mut *transaction, workspace, &format!("w{writer}_{number}")).await;
                tokio::task::yield_now().await;
                transaction.commit().await.unwrap();
            }
        }));
    }
    let mut heard = std::collections::HashSet::new();
    while heard.len() < writers * each {
        let (at, kind) = event(&mut stream).await;
        assert!(at > position, "in order, and nothing twice");
        position = at;
        assert!(heard.insert(kind), "something came twice");
        if heard.len() % 97 == 0 {
            stream = client.events(&queue_only(), Some(position)).await.unwrap();
            assert_eq!(hello(&mut stream).await, position);
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_comes_back_too_late_is_told_so() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let workspace = scene.tenant(1, ENDLESS).await.workspace;
    let mut stream = client.events(&queue_only(), None).await.unwrap();
    let start = hello(&mut stream).await;
    for number in 0..5 {
        scene.happens(workspace, &format!("n{number}")).await;
    }
    let mut last = start;
    for _ in 0..5 {
        last = event(&mut stream).await.0;
    }
    let old = "delete from stationmaster_internal.events where position <= $1";
    sqlx::query(old)
        .bind(last - 1)
        .execute(&scene.database.pool)
        .await
        .unwrap();
    let mut late = client.events(&queue_only(), Some(start)).await.unwrap();
    match next(&mut late).await {
        Told::Reset(reset) => assert!(reset.oldest > start + 1 && reset.newest >= last, "{reset:?}"),
        other => panic!("{other:?} is no reset"),
    }
    scene.happens(workspace, "after").await;
    assert_eq!(event(&mut late).await.1, "queue.after");
    let mut kept = client.events(&queue_only(), Some(last - 1)).await.unwrap();
    assert_eq!(hello(&mut kept).await, last - 1);
    assert_eq!(event(&mut kept).await.0, last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_hears_only_its_workspaces_and_the_audit_only_as_admin() {
    let scene = Scene::new().await;
    let (own, foreign) = (
        scene.tenant(1, ENDLESS).await.workspace,
        scene.tenant(1, ENDLESS).await.workspace,
    );
    let token = scene.token(Role::Operator, Some(own)).await;
    let client = scene.client(&token);
    let mut stream = client.events(&EventQuery::default(), None).await.unwrap();
    hello(&mut stream).await;
    // A stream begins where the server has read to, which may lie before what made the scene.
    scene.happens(own, "begins").await;
    let (start, begins) = event(&mut stream).await;
    assert_eq!(begins, "queue.begins");
    scene.happens(foreign, "foreign").await;
    client.pause_workspace(own).await.unwrap();
    scene.happens(own, "own").await;
    assert_eq!(event(&mut stream).await.1, "queue.own");
    let mut again = client.events(&EventQuery::default(), Some(start)).await.unwrap();
    hello(&mut again).await;
    assert_eq!(
        event(&mut again).await.1,
        "queue.own",
        "what is read from the table is filtered alike"
    );

    let admin = scene.admin().await;
    let mut audit = admin
        .events(
            &EventQuery {
                family: Some("audit".to_owned()),
                ..EventQuery::default()
            },
            Some(start),
        )
        .await
        .unwrap();
    hello(&mut audit).await;
    assert_eq!(event(&mut audit).await.1, "audit.workspace.change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_token_and_with_its_server() {
    let mut scene = Scene::new().await;
    let admin = scene.admin().await;
    let token = scene.token(Role::Viewer, None).await;
    let client = scene.client(&token);
    let id: Uuid = client.own_token().await.unwrap().id;
    let mut stream = client.events(&EventQuery::default(), None).await.unwrap();
    hello(&mut stream).await;
    admin.revoke_token(id).await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, stream.next())
        .await
        .expect("it ends");
    assert!(matches!(ended, Ok(None) | Err(_)), "{ended:?}");

    let mut stream = admin.events(&EventQuery::default(), None).await.unwrap();
    hello(&mut stream).await;
    scene.server.signal(Signal::SIGTERM);
    let ended = tokio::time::timeout(PATIENCE, async { while let Ok(Some(_)) = stream.next().await {} });
    ended.await.expect("the stream ends when its server does");
    let (status, _) = scene.server.ended().await;
    assert!(status.success(), "{}", scene.server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_bounded_and_a_place_is_given_back() {
    let scene = Scene::with(&[("HTTP__MAX_STREAMS", "1")]).await;
    let client = scene.admin().await;
    let mut stream = client.events(&EventQuery::default(), None).await.unwrap();
    hello(&mut stream).await;
    let refused = client
        .events(&EventQuery::default(), None)
        .await
        .err()
        .expect("there is one place");
    assert_eq!(refused.problem().unwrap().name(), "overloaded");
    drop(stream);
    eventually("the place is free again", async || {
        client.events(&EventQuery::default(), None).await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_tells_no_more_of_a_workspace_than_its_token_may_see_now() {
    let scene = Scene::new().await;
    let (kept, lost) = (
        scene.tenant(1, ENDLESS).await.workspace,
        scene.tenant(1, ENDLESS).await.workspace,
    );
    let admin = scene.admin().await;
    let token = wire::NewToken {
        name: "narrowed".to_owned(),
        role: wire::Role::Viewer,
        workspaces: Some(vec![kept, lost]),
        expires_at: None,
    };
    let token = admin.make_token(&token).await.unwrap();
    let client = scene.client(&token.secret);
    let mut both = client.events(&queue_only(), None).await.unwrap();
    let of_the_lost = EventQuery {
        workspace_id: Some(lost.into()),
        ..queue_only()
    };
    let mut ending = client.events(&of_the_lost, None).await.unwrap();
    hello(&mut both).await;
    hello(&mut ending).await;
    scene.happens(lost, "before").await;
    assert_eq!(event(&mut both).await.1, "queue.before");
    assert_eq!(event(&mut ending).await.1, "queue.before");
    let narrow = "update stationmaster_internal.tokens set workspaces = $1 where id = $2";
    let narrow = sqlx::query(narrow).bind(vec![kept]).bind(token.token.id);
    narrow.execute(&scene.database.pool).await.unwrap();
    // Whoever asks for the lost one alone is sent away; by then the other stream may hear of it once more, and soon no more.
    tokio::time::timeout(PATIENCE, async { while let Ok(Some(_)) = ending.next().await {} })
        .await
        .expect("a stream of a workspace that is out of reach ends");
    let mut heard_less = false;
    for round in 0..20 {
        scene.happens(lost, &format!("lost_{round}")).await;
        scene.happens(kept, &format!("kept_{round}")).await;
        let first = event(&mut both).await.1;
        if first == format!("queue.kept_{round}") {
            heard_less = true;
            break;
        }
        assert_eq!(event(&mut both).await.1, format!("queue.kept_{round}"));
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    assert!(heard_less, "it goes on to tell of the lost workspace");
}
