//! What a live view follows: the steps of executions, fires of alarms, dispatchers that change hands.

use std::collections::BTreeMap;

use stationmaster_client::wire::{
    AlarmChange, Cancel, Enqueue, Event, EventQuery, NewAlarm, NewSignal, PageQuery, TriggerChange,
    TriggerPlace,
};
use stationmaster_client::{Client, EventStream, Told};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, Tenant};
use crate::support::receiver::Receiver;
use crate::support::{Launch, PATIENCE, SHORT, eventually};

const STEPS: [&str; 4] = [
    "execution.enqueued",
    "execution.claimed",
    "execution.dispatched",
    "execution.completed",
];

async fn listen(client: &Client, family: &str, after: Option<i64>) -> EventStream {
    let query = EventQuery {
        family: Some(family.to_owned()),
        ..EventQuery::default()
    };
    let mut stream = client.events(&query, after).await.unwrap();
    match tokio::time::timeout(PATIENCE, stream.next())
        .await
        .expect("in time")
    {
        Ok(Some(Told::Hello(hello))) => assert!(after.is_none_or(|after| after == hello.position)),
        other => panic!("{other:?} is no greeting"),
    }
    stream
}

async fn next(stream: &mut EventStream) -> Event {
    let told = tokio::time::timeout(PATIENCE, stream.next()).await;
    match told.expect("something is told in time") {
        Ok(Some(Told::Event(event))) => event,
        other => panic!("{other:?} is no event"),
    }
}

fn item(event: &Event) -> Uuid {
    event.detail["item_id"].as_str().unwrap().parse().unwrap()
}

/// Enqueues items of both tenants by one statement.
async fn enqueue_mixed(scene: &Scene, tenants: [Tenant; 2], each: i32) {
    let query = "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id)
                 select t.workspace, t.workflow from unnest($1::uuid[], $2::uuid[]) as t (workspace, workflow), generate_series(1, $3)";
    sqlx::query(query)
        .bind(tenants.map(|tenant| tenant.workspace).as_slice())
        .bind(tenants.map(|tenant| tenant.workflow).as_slice())
        .bind(each)
        .execute(&scene.database.pool)
        .await
        .unwrap();
}

async fn tell_steps(scene: &Scene, wanted: bool) {
    let tell = sqlx::query("select stationmaster.tell_steps($1)").bind(wanted);
    tell.execute(&scene.database.pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_steps_of_an_execution_are_told_in_their_order() {
    let scene = Scene::new().await;
    tell_steps(&scene, true).await;
    let tenant = scene.tenant(1, SHORT).await;
    let client = scene.client(&scene.token(Role::Operator, Some(tenant.workspace)).await);
    let mut stream = listen(&client, "execution", None).await;
    let request = Enqueue::new(tenant.workspace, tenant.workflow);
    let id = client.enqueue(&request).await.unwrap().id;
    let mut told = Vec::new();
    for step in STEPS {
        let event = next(&mut stream).await;
        assert_eq!((event.kind.as_str(), item(&event)), (step, id));
        assert_eq!(event.workspace_id, Some(tenant.workspace));
        told.push(event.detail["execution_id"].clone());
    }
    let execution = client.queue_item(id).await.unwrap().item.execution_id.unwrap();
    assert!(
        told[0].is_null() && told[1..].iter().all(|id| *id == execution.to_string()),
        "{told:?}"
    );
    client.pause_workspace(tenant.workspace).await.unwrap();
    let second = client.enqueue(&request).await.unwrap().id;
    client.cancel(second, &Cancel::default()).await.unwrap();
    for kind in ["execution.enqueued", "execution.cancelled"] {
        let event = next(&mut stream).await;
        assert_eq!((event.kind.as_str(), item(&event)), (kind, second));
        assert!(event.detail["execution_id"].is_null(), "it never had one");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_comes_and_goes_among_thousands_of_steps_hears_each_once_in_order() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    tell_steps(&scene, true).await;
    let admin = scene.admin().await;
    let tenants = [scene.tenant(20, SHORT).await, scene.tenant(20, SHORT).await];
    let mut stream = listen(&admin, "execution", None).await;
    // The first to enqueue is the last to commit.
    let mut late = scene.database.pool.begin().await.unwrap();
    let query = "select stationmaster.enqueue_execution($1, $2)";
    let latest: Uuid = sqlx::query_scalar(query)
        .bind(tenants[0].workspace)
        .bind(tenants[0].workflow)
        .fetch_one(&mut *late)
        .await
        .unwrap();
    let writers = (0..4).map(|_| async {
        for _ in 0..5 {
            enqueue_mixed(&scene, tenants, 10).await;
        }
    });
    futures::future::join_all(writers).await;
    let expected = 4 * 5 * 2 * 10;
    let mut steps: BTreeMap<Uuid, Vec<String>> = BTreeMap::new();
    let (mut heard, mut position) = (0, 0);
    let mut late = Some(late);
    while heard < (expected + 1) * STEPS.len() {
        let event = next(&mut stream).await;
        assert!(event.position > position, "in order, and nothing twice");
        position = event.position;
        steps.entry(item(&event)).or_default().push(event.kind);
        heard += 1;
        if heard == expected
            && let Some(late) = late.take()
        {
            assert!(!steps.contains_key(&latest));
            late.commit().await.unwrap();
        }
        // Also in the midst of what one statement did.
        if heard % 97 == 0 {
            stream = listen(&admin, "execution", Some(position)).await;
        }
    }
    assert_eq!(steps.len(), expected + 1);
    for (item, told) in steps {
        assert_eq!(told, STEPS, "{item}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_what_one_statement_did_a_listener_hears_only_its_own() {
    let scene = Scene::new().await;
    let tenants = [scene.tenant(0, ENDLESS).await, scene.tenant(0, ENDLESS).await];
    // Nobody has asked for them yet.
    enqueue_mixed(&scene, tenants, 1).await;
    tell_steps(&scene, true).await;
    let own = tenants[0].workspace;
    let client = scene.client(&scene.token(Role::Viewer, Some(own)).await);
    let mut live = listen(&client, "execution", None).await;
    enqueue_mixed(&scene, tenants, 3).await;
    enqueue_mixed(&scene, [tenants[0], tenants[0]], 1).await;
    let mut again = listen(&client, "execution", Some(0)).await;
    for stream in [&mut live, &mut again] {
        for _ in 0..5 {
            assert_eq!(next(stream).await.workspace_id, Some(own));
        }
    }
    tell_steps(&scene, false).await;
    enqueue_mixed(&scene, tenants, 1).await;
    tell_steps(&scene, true).await;
    enqueue_mixed(&scene, [tenants[0], tenants[1]], 1).await;
    let event = next(&mut live).await;
    let newest =
        "select id from stationmaster_internal.queue_items where workspace_id = $1 order by seq desc limit 1";
    let newest: Uuid = sqlx::query_scalar(newest)
        .bind(own)
        .fetch_one(&scene.database.pool)
        .await
        .unwrap();
    assert_eq!(item(&event), newest, "what was not to be told is not");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fire_of_an_alarm_is_told_and_what_people_do_to_it_is_in_its_history() {
    let receiver = Receiver::start().await;
    let scene = Scene::with(&[("ALARMS__ROUTER_URL", &receiver.url(""))]).await;
    let workspace = scene.tenant(0, ENDLESS).await.workspace;
    let client = scene.client(&scene.token(Role::Operator, Some(workspace)).await);
    let mut stream = listen(&client, "alarm", None).await;
    let request = NewAlarm {
        workspace_id: workspace,
        cron_expr: Some("@yearly".to_owned()),
        ..NewAlarm::default()
    };
    let id = client.set_alarm(&request).await.unwrap().alarm.id;
    let change = AlarmChange {
        label: Some("yearly".to_owned()),
        message: Some(Some("a secret".to_owned())),
        ..AlarmChange::default()
    };
    client.change_alarm(id, &change, None).await.unwrap();
    let fired = client.fire_alarm(id).await.unwrap();
    for kind in ["alarm.set", "alarm.edited", "alarm.fired_by_hand", "alarm.fired"] {
        let event = next(&mut stream).await;
        assert_eq!((event.kind.as_str(), event.workspace_id), (kind, Some(workspace)));
        assert_eq!(event.detail["alarm_id"], id.to_string());
        if kind == "alarm.fired" {
            let at: jiff::Timestamp = event.detail["scheduled_for"].as_str().unwrap().parse().unwrap();
            assert_eq!(at, fired.scheduled_for);
        }
    }
    let first = PageQuery {
        limit: Some(2),
        ..PageQuery::default()
    };
    let page = client.alarm_history(id, &first).await.unwrap();
    let events: Vec<&str> = page.items.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(events, ["fired by hand", "edited"]);
    let edit = &page.items[1];
    assert!(edit.actor.starts_with("token:operator"), "{edit:?}");
    let told = edit.detail.as_deref().unwrap();
    assert!(
        told.contains(r#"label from "" to "yearly""#) && told.contains("message"),
        "{told}"
    );
    assert!(
        !told.contains("secret"),
        "what a wake carries is not told: {told}"
    );
    let rest = PageQuery {
        cursor: page.next_cursor,
        ..first
    };
    let rest = client.alarm_history(id, &rest).await.unwrap();
    assert_eq!((rest.items.len(), rest.items[0].event.as_str()), (1, "set"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_is_taken_over_is_told_live_and_in_its_history() {
    let settings = [
        ("DISPATCHERS__LEASE", "3s"),
        ("DISPATCHERS__HEARTBEAT_INTERVAL", "1s"),
        ("DISPATCHERS__STALE_AFTER", "4s"),
        ("DISPATCHERS__CHECK_INTERVAL", "1s"),
    ];
    let mut scene = Scene::with(&settings).await;
    let tenant = scene.tenant(1, ENDLESS).await;
    let admin = scene.admin().await;
    let trigger = TriggerChange {
        workflow_definition_id: tenant.workflow,
        payload_schema: None,
        priority: Some(0),
    };
    admin
        .put_trigger("shop", "paid", &TriggerPlace::default(), &trigger)
        .await
        .unwrap();
    admin.send_signal(&NewSignal::new("shop", "paid")).await.unwrap();
    let id = "dispatcher-shop-default";
    eventually("it has an owner", async || {
        admin.dispatcher(id).await.unwrap().epoch == 1
    })
    .await;
    let launch = settings
        .iter()
        .fold(Launch::on(&scene.database), |launch, (name, value)| {
            launch.with(name, value)
        });
    let second = launch.start_ready().await;
    let token = scene.token(Role::Viewer, Some(tenant.workspace)).await;
    let address = format!("http://{}", second.address().unwrap());
    let client = Client::builder().token(&token).build(&address).unwrap();
    let mut stream = listen(&client, "dispatcher", None).await;
    scene.server.kill();
    let event = loop {
        let event = next(&mut stream).await;
        if event.kind == "dispatcher.takeover" {
            break event;
        }
    };
    assert_eq!(event.workspace_id, Some(tenant.workspace));
    assert_eq!(
        (&event.detail["dispatcher_id"], &event.detail["epoch"]),
        (&id.into(), &2.into())
    );
    let history = client
        .dispatcher_history(id, &PageQuery::default())
        .await
        .unwrap()
        .items;
    let owners: Vec<(&str, Option<i64>)> = history
        .iter()
        .rev()
        .filter(|event| ["fresh", "takeover"].contains(&event.event.as_str()))
        .map(|event| (event.event.as_str(), event.epoch))
        .collect();
    assert_eq!(owners, [("fresh", Some(1)), ("takeover", Some(2))], "{history:?}");
}
