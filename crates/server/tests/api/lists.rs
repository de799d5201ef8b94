//! Lists: every row once, whatever is inserted meanwhile; filters; cursors that cannot be bent.

use std::collections::HashSet;

use reqwest::{Method, StatusCode};
use serde_json::value::RawValue;
use stationmaster_client::wire::{
    Cancel, Enqueue, ExecutionQuery, ExecutionStatus, ItemStatus, PageQuery, QueueCountQuery,
    QueueItemChange, QueueOrder, QueueQuery,
};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, answer, problem};
use crate::support::{SHORT, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_miss_and_repeat_nothing_while_others_enqueue_and_items_run() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    let client = scene.admin().await;
    let (waiting, moving) = (scene.tenant(0, ENDLESS).await, scene.tenant(5, SHORT).await);
    let mut before = HashSet::new();
    for tenant in [waiting, moving] {
        let requests = vec![Enqueue::new(tenant.workspace, tenant.workflow); 150];
        before.extend(
            client
                .enqueue_all(requests)
                .await
                .unwrap()
                .into_iter()
                .map(|made| made.id),
        );
    }
    let more = {
        let client = client.clone();
        tokio::spawn(async move {
            loop {
                for tenant in [waiting, moving] {
                    let requests = vec![Enqueue::new(tenant.workspace, tenant.workflow); 3];
                    client.enqueue_all(requests).await.unwrap();
                }
            }
        })
    };
    let mut query = QueueQuery {
        limit: Some(7),
        ..QueueQuery::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = client.queue(&query).await.unwrap();
        seen.extend(page.items.iter().map(|item| item.id));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    more.abort();
    let distinct: HashSet<Uuid> = seen.iter().copied().collect();
    assert_eq!(distinct.len(), seen.len(), "something came twice");
    let missed: Vec<&Uuid> = before.difference(&distinct).collect();
    assert!(missed.is_empty(), "{} were missed", missed.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_find_what_they_name_and_a_scoped_token_sees_its_own() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let (one, other) = (scene.tenant(0, ENDLESS).await, scene.tenant(3, SHORT).await);
    let mut request = Enqueue::new(one.workspace, one.workflow);
    request.input =
        Some(RawValue::from_string(r#"{"order": "A_1%", "note": "Überweisung"}"#.to_owned()).unwrap());
    let marked = client.enqueue(&request).await.unwrap().id;
    request.input = Some(RawValue::from_string(r#"{"order": "AX12"}"#.to_owned()).unwrap());
    let plain = client.enqueue(&request).await.unwrap().id;
    let done = client
        .enqueue(&Enqueue::new(other.workspace, other.workflow))
        .await
        .unwrap()
        .id;
    eventually("the other's runs to its end", async || {
        let query = ExecutionQuery {
            status: Some(ExecutionStatus::Completed),
            ..ExecutionQuery::default()
        };
        client.executions(&query).await.unwrap().items.len() == 1
    })
    .await;
    let ids = async |query: QueueQuery| -> Vec<Uuid> {
        let page = client.queue(&query).await.unwrap();
        assert!(page.next_cursor.is_none());
        page.items.into_iter().map(|item| item.id).collect()
    };
    let all = QueueQuery::default;
    assert_eq!(ids(all()).await, [done, plain, marked]);
    assert_eq!(
        ids(QueueQuery {
            status: Some(ItemStatus::Pending),
            ..all()
        })
        .await,
        [plain, marked]
    );
    assert_eq!(
        ids(QueueQuery {
            status: Some(ItemStatus::Dispatched),
            ..all()
        })
        .await,
        [done]
    );
    assert_eq!(
        ids(QueueQuery {
            workspace_id: Some(other.workspace.into()),
            ..all()
        })
        .await,
        [done]
    );
    assert_eq!(
        ids(QueueQuery {
            workflow_definition_id: Some(one.workflow.into()),
            ..all()
        })
        .await,
        [plain, marked]
    );
    assert_eq!(
        ids(QueueQuery {
            search: Some("a_1%".to_owned()),
            ..all()
        })
        .await,
        [marked],
        "a pattern means itself"
    );
    assert_eq!(
        ids(QueueQuery {
            search: Some("NOTE".to_owned()),
            ..all()
        })
        .await,
        [marked]
    );
    let item = client.queue_item(plain).await.unwrap().item;
    assert_eq!(
        ids(QueueQuery {
            created_after: Some(item.created_at),
            ..all()
        })
        .await,
        [done, plain]
    );
    assert_eq!(
        ids(QueueQuery {
            created_before: Some(item.created_at),
            ..all()
        })
        .await,
        [marked]
    );

    let ordered = async |order, workspace: Option<Uuid>| {
        let query = QueueQuery {
            order: Some(order),
            workspace_id: workspace.map(Into::into),
            ..all()
        };
        ids(query).await
    };
    assert_eq!(ordered(QueueOrder::Oldest, None).await, [marked, plain, done]);
    client
        .change_queue_item(plain, &QueueItemChange { priority: 3 })
        .await
        .unwrap();
    assert_eq!(
        ordered(QueueOrder::Next, Some(one.workspace)).await,
        [plain, marked]
    );
    let admin = scene.token(Role::Admin, None).await;
    for (query, field) in [
        ("order=next".to_owned(), "order"),
        (
            format!("order=next&status=FAILED&workspace={}", one.workspace),
            "status",
        ),
        ("order=tallest".to_owned(), "order"),
    ] {
        let (status, refused) =
            answer(scene.ask(Method::GET, &format!("/v1/queue?{query}"), Some(&admin))).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        assert_eq!(refused["errors"][0]["field"], field, "{query}: {refused}");
    }
    let first = QueueQuery {
        order: Some(QueueOrder::Oldest),
        limit: Some(1),
        ..all()
    };
    let bent = QueueQuery {
        order: None,
        cursor: client.queue(&first).await.unwrap().next_cursor,
        ..first.clone()
    };
    assert!(bent.cursor.is_some());
    assert!(client.queue(&bent).await.is_err(), "a cursor knows its order");

    let token = scene.token(Role::Viewer, Some(other.workspace)).await;
    let scoped = scene.client(&token);
    let counted = scoped.queue_counts(&QueueCountQuery::default()).await.unwrap();
    let counted: Vec<_> = counted.iter().map(|count| (count.status, count.count)).collect();
    assert!(
        counted.contains(&(ItemStatus::Pending, 0)) && counted.contains(&(ItemStatus::Dispatched, 1)),
        "{counted:?}"
    );
    let foreign = QueueCountQuery {
        workspace_id: Some(one.workspace.into()),
        ..QueueCountQuery::default()
    };
    assert!(scoped.queue_counts(&foreign).await.is_err());
    let page = scoped.queue(&all()).await.unwrap();
    assert_eq!(page.items.iter().map(|item| item.id).collect::<Vec<_>>(), [done]);
    assert_eq!(
        scoped
            .workspaces(&PageQuery::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    let overview = scoped
        .overview(&stationmaster_client::wire::OverviewQuery::default())
        .await
        .unwrap();
    assert_eq!(
        (
            overview.overview.waiting,
            overview.workspaces.len(),
            overview.executions.len()
        ),
        (0, 1, 1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_are_listed_by_status_workspace_and_end() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let tenant = scene.tenant(50, SHORT).await;
    let requests = vec![Enqueue::new(tenant.workspace, tenant.workflow); 12];
    client.enqueue_all(requests).await.unwrap();
    let completed = ExecutionQuery {
        workspace_id: Some(tenant.workspace.into()),
        status: Some(ExecutionStatus::Completed),
        limit: Some(5),
        ..ExecutionQuery::default()
    };
    scene.database.until_count("COMPLETED", 12).await;
    let mut query = completed.clone();
    let mut seen = Vec::new();
    loop {
        let page = client.executions(&query).await.unwrap();
        assert!(page.items.len() <= 5);
        seen.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 12);
    assert!(seen.windows(2).all(|two| two[0].id > two[1].id), "newest first");
    let last = seen
        .iter()
        .filter_map(|execution| execution.completed_at)
        .max()
        .unwrap();
    let query = ExecutionQuery {
        completed_after: Some(last),
        ..ExecutionQuery::default()
    };
    assert_eq!(client.executions(&query).await.unwrap().items.len(), 1);
    let query = ExecutionQuery {
        status: Some(ExecutionStatus::Failed),
        ..ExecutionQuery::default()
    };
    assert!(client.executions(&query).await.unwrap().items.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_belongs_to_its_list_and_its_filters() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Viewer, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    for _ in 0..3 {
        scene.item(tenant).await;
    }
    let (status, page) = answer(scene.ask(Method::GET, "/v1/queue?limit=2", Some(&token))).await;
    assert_eq!(status, StatusCode::OK);
    let cursor = page["next_cursor"].as_str().unwrap();
    let (status, rest) = answer(scene.ask(
        Method::GET,
        &format!("/v1/queue?limit=9&cursor={cursor}"),
        Some(&token),
    ))
    .await;
    assert_eq!(
        (status, rest["items"].as_array().unwrap().len()),
        (StatusCode::OK, 1)
    );
    assert!(rest.get("next_cursor").is_none());
    let tampered = format!("{}A", &cursor[..cursor.len() - 1]);
    for path in [
        format!("/v1/queue?cursor={cursor}&status=PENDING"),
        format!("/v1/executions?cursor={cursor}"),
        format!("/v1/queue?cursor={cursor}x"),
        format!(
            "/v1/queue?cursor={}",
            if tampered == cursor {
                format!("{}B", &cursor[..cursor.len() - 1])
            } else {
                tampered
            }
        ),
    ] {
        let (status, body) = answer(scene.ask(Method::GET, &path, Some(&token))).await;
        assert_eq!(
            (status, problem(&body)),
            (StatusCode::BAD_REQUEST, "bad-cursor"),
            "{path}"
        );
    }
}

/// With the connections that requests have by default, one of them is for lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_keeps_its_turn_until_the_database_is_done_with_its_list() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let hold = scene
        .database
        .lock("lock table stationmaster.audit in access exclusive mode")
        .await;
    let waiting =
        "select count(*) from pg_locks where not granted and relation = 'stationmaster.audit'::regclass";
    let ask = || tokio::spawn(scene.ask(Method::GET, "/v1/audit", Some(&token)).send());
    for _ in 0..5 {
        let asked = ask();
        eventually("a list is read", async || {
            scene.database.number(waiting).await > 0
        })
        .await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        asked.abort();
        let _ = asked.await;
    }
    let last = ask();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(scene.database.number(waiting).await, 1);
    // What is no list is answered meanwhile.
    let own = scene.ask(Method::GET, "/v1/tokens/self", Some(&token));
    assert_eq!(answer(own).await.0, StatusCode::OK);
    hold.rollback().await.unwrap();
    assert_eq!(last.await.unwrap().unwrap().status(), StatusCode::OK);
}

/// More than is looked at for one page, and nothing of what is asked for. No trigger sees it.
const MUCH: &str = "
    set session_replication_role = replica;
    insert into stationmaster_internal.signals_inbox (id, project, name, payload)
    select 'old-' || n, 'shop', 'order', '{}' from generate_series(1, 12000) n;
    insert into stationmaster_internal.signals_settled (signal_key, dispatcher_id, status, epoch, settled_by, settled_at, replays)
    select key, 'dispatcher-shop-default', 'ROUTED', 1, 'a test', now(), 0 from stationmaster_internal.signals_inbox;
    insert into stationmaster.audit (actor, action, subject, detail)
    select 'somebody', 'workspace.put', 'old-' || n, '{}' from generate_series(1, 12000) n;
    insert into stationmaster_internal.alarm_definitions (workspace_id, kind, fire_at)
    select (select id from stationmaster.workspaces limit 1), 'once', now() + interval '1 day' from generate_series(1, 12000) n;
    insert into stationmaster_internal.alarm_standings (alarm_id, status)
    select id, 'active' from stationmaster_internal.alarm_definitions;
    update stationmaster_internal.alarm_standings set status = 'failed'
    where alarm_id = (select id from stationmaster_internal.alarm_definitions order by id limit 1);
    insert into stationmaster_internal.occurrences_finished (alarm_id, scheduled_for, origin, status, due_at)
    select (select id from stationmaster_internal.alarm_definitions order by id limit 1), now() - n * interval '1 second', 'schedule', 'fired', now()
    from generate_series(1, 12000) n;
    set session_replication_role = origin";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_looks_at_so_many_rows_for_a_page_and_says_where_to_go_on() {
    let scene = Scene::new().await;
    let workspace = scene.tenant(1, ENDLESS).await.workspace;
    sqlx::raw_sql(MUCH).execute(&scene.database.pool).await.unwrap();
    let (all, scoped) = (
        scene.token(Role::Admin, None).await,
        scene.token(Role::Admin, Some(workspace)).await,
    );
    let page = async |token: &str, path: &str, cursor: Option<&str>| {
        let path = cursor.map_or_else(|| path.to_owned(), |cursor| format!("{path}&cursor={cursor}"));
        let (status, body) = answer(scene.ask(Method::GET, &path, Some(token))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let next = body["next_cursor"].as_str().map(str::to_owned);
        (body["items"].as_array().unwrap().clone(), next)
    };
    let failed = "/v1/alarms?status=failed";
    for token in [&all, &scoped] {
        let (found, next) = page(token, failed, None).await;
        assert_eq!(
            (found.len(), next),
            (1, None),
            "what has failed is found at once, however old"
        );
    }
    let alarm = page(&all, failed, None).await.0[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for (token, path) in [
        (&all, "/v1/signals?status=DEAD"),
        (&all, "/v1/audit?actor=nobody"),
        (&all, "/v1/alarms?search=nothing"),
        (&scoped, "/v1/alarms?search=nothing"),
        (&scoped, "/v1/alarms?status=fired"),
        (&all, &format!("/v1/alarms/{alarm}/occurrences?status=failed")),
    ] {
        let (mut pages, mut cursor) = (0, None);
        loop {
            let (found, next) = page(token, path, cursor.as_deref()).await;
            assert!(found.is_empty(), "{path}: {found:?}");
            pages += 1;
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, 3, "{path}: 12,000 rows, 5,000 looked at for a page");
    }
    // Whole pages go through everything once.
    for (path, count) in [
        ("/v1/alarms?limit=500".to_owned(), 12_000),
        (format!("/v1/alarms/{alarm}/occurrences?limit=500"), 12_000),
    ] {
        let (mut seen, mut cursor) = (HashSet::new(), None);
        loop {
            let (found, next) = page(&scoped, &path, cursor.as_deref()).await;
            for one in found {
                let name = one.get("scheduled_for").unwrap_or(&one["id"]).to_string();
                assert!(seen.insert(name.clone()), "{path}: {name} is there twice");
            }
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), count, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_takes_several_statuses_and_goes_through_all_of_them_page_by_page() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    let client = scene.admin().await;
    let (waiting, running) = (scene.tenant(0, ENDLESS).await, scene.tenant(50, ENDLESS).await);
    let mut wanted = HashSet::new();
    for place in 0..12 {
        let item = scene.item(if place % 2 == 0 { waiting } else { running }).await;
        if place % 4 == 0 {
            client.cancel(item, &Cancel::default()).await.unwrap();
        }
        if place % 4 != 2 {
            wanted.insert(item);
        }
    }
    let token = scene.token(Role::Viewer, None).await;
    let running = [
        "/v1/executions?status=STARTING,running",
        "/v1/executions?status=starting&status=RUNNING",
    ];
    for path in running {
        eventually("they run", async || {
            let (_, page) = answer(scene.ask(Method::GET, path, Some(&token))).await;
            page["items"].as_array().unwrap().len() == 6
        })
        .await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/queue?status=Cancelled,%20dispatched,CLAIMED&limit=4{cursor}");
        let (status, page) = answer(scene.ask(Method::GET, &path, Some(&token))).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let ids = page["items"].as_array().unwrap().iter();
        seen.extend(ids.map(|item| item["id"].as_str().unwrap().parse::<Uuid>().unwrap()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(
        seen.is_sorted_by(|one, other| one > other),
        "newest first: {seen:?}"
    );
    assert_eq!(seen.iter().copied().collect::<HashSet<_>>(), wanted);
    let (status, body) = answer(scene.ask(Method::GET, "/v1/queue?status=PENDING,lost", Some(&token))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        (body["errors"].as_array().unwrap().len(), problem(&body)),
        (1, "invalid"),
        "{body}"
    );
}
