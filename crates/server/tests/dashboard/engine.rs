//! What people learn of the engine behind the servers: that it does not answer, and that it runs what nobody here knows of.

use stationmaster_core::access::Role;
use stationmaster_core::db::Database;
use uuid::Uuid;

use crate::scene::Scene;
use crate::support::{ENDLESS, Launch, Proxy, Temporal, TestDatabase, Work, Worker, eventually};
use crate::visit::{Place, Visit};

/// A server on Temporal by this address, which looks for strays all the time.
async fn on_temporal(temporal: &Temporal, address: &str) -> Visit {
    let database = TestDatabase::new().await;
    let server = Launch::on(&database)
        .temporal(address, &temporal.namespace)
        .with("EXECUTIONS__RECONCILE_INTERVAL", "1s")
        .with(
            "HTTP__TEMPORAL_UI_URL",
            "https://temporal.example/namespaces/shop",
        )
        .start_ready()
        .await;
    Visit::on(Scene {
        address: server.address().unwrap(),
        core: Database::new(&database.url, 4).unwrap(),
        server,
        database,
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_does_not_answer_is_told_since_when_and_gone_once_it_does() {
    let temporal = Temporal::shared().await;
    let proxy = Proxy::before(&temporal.address).await;
    let visit = on_temporal(&temporal, &proxy.address).await;
    let place = visit.place("acme", 1, ENDLESS).await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/").await;
    let line = "[...document.querySelectorAll('#needs li')].find(line => line.innerText.startsWith('Engine temporal'))";
    let gone = format!("{line} === undefined");
    assert_eq!(tab.look(&gone).await, true, "{}", tab.main().await);
    let from = jiff::Timestamp::now();
    proxy.vanish();
    // The page that is open learns of it.
    tab.until("it is told", &format!("!({gone})")).await;
    let item = visit.item(&place, "{}").await;
    let server = visit.client.servers().await.unwrap().remove(0);
    let words = tab.look(&format!("{line}.innerText")).await;
    let words = words.as_str().unwrap();
    assert!(
        words.contains(&format!("does not answer {}", server.name)) && words.contains("since"),
        "{words}"
    );
    let told = tab.look(&format!("{line}.querySelector('time').dateTime")).await;
    let told: jiff::Timestamp = told.as_str().unwrap().parse().unwrap();
    assert!(
        told >= from - jiff::SignedDuration::from_secs(30),
        "{told} is before {from}"
    );
    tab.and_then_a_page(&format!("{line}.querySelector('a').click()"))
        .await;
    assert_eq!(tab.address().await, "/servers");
    assert!(
        tab.text("#servers").await.contains("does not answer since"),
        "{}",
        tab.main().await
    );
    // What waits for it says so, too.
    tab.open(&format!("/queue/{item}")).await;
    tab.shows("the engine is away").await;
    proxy.door(crate::support::Door::Open);
    tab.open("/").await;
    tab.until("it is told no more", &gone).await;
    visit.running(item).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_workspace_whose_runs_nobody_works_on_is_told_with_the_reason_and_gone_once_somebody_does() {
    let temporal = Temporal::shared().await;
    let visit = on_temporal(&temporal, &temporal.address).await;
    let place = visit.place("acme", 1, ENDLESS).await;
    let running = visit.running(visit.item(&place, "{}").await).await.id;
    visit.item(&place, "{}").await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/").await;
    let words = "acme does not go on";
    tab.shows(words).await;
    let leads = "document.querySelector('#needs a[href=\"/runbooks/no-workers\"]') !== null";
    assert_eq!(tab.look(leads).await, true, "{}", tab.main().await);
    let needs = tab.text("#needs").await;
    let why = format!("no worker polls task queue {}", temporal.namespace);
    assert!(needs.contains(&why) && !needs.contains("All in order"), "{needs}");
    tab.press(words).await;
    assert_eq!(tab.address().await, format!("/executions/{running}"));
    tab.open("/workspaces/acme").await;
    let used = tab.text("#use").await;
    assert!(
        used.contains(&why) && !used.contains("a higher limit would let more run"),
        "{used}"
    );
    let _worker = Worker::start(&temporal, Work::CompleteAfter(std::time::Duration::ZERO));
    tab.open("/").await;
    tab.until(
        "it goes on",
        &format!("!document.querySelector('#needs').innerText.includes('{words}')"),
    )
    .await;
}

/// What a failover does that loses the last commits, done by hand: the rows go, and the run goes on.
async fn lost(visit: &Visit, place: &Place) -> Uuid {
    let execution = visit.running(visit.item(place, "{}").await).await.id;
    let lose = format!(
        "with gone as (
             delete from stationmaster_internal.executions_active where execution_id = '{execution}'
         ), item as (
             delete from stationmaster_internal.queue_items where id = '{execution}'
         )
         update stationmaster_internal.workspace_capacity set active = active - 1 where workspace_id = '{}'",
        place.workspace
    );
    sqlx::query(sqlx::AssertSqlSafe(lose))
        .execute(&visit.scene.database.pool)
        .await
        .unwrap();
    execution
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_no_row_tells_of_is_found_from_the_overview_and_ended_by_whoever_may_and_no_other_is() {
    let temporal = Temporal::shared().await;
    let visit = on_temporal(&temporal, &temporal.address).await;
    let (place, other) = (
        visit.place("acme", 2, ENDLESS).await,
        visit.place("globex", 1, ENDLESS).await,
    );
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/executions/strays").await;
    assert!(
        tab.text("#strays").await.contains("There is none"),
        "{}",
        tab.main().await
    );
    let (ended, kept) = (lost(&visit, &place).await, lost(&visit, &place).await);
    let foreign = lost(&visit, &other).await;
    tab.open("/").await;
    let count = "3 runs on the engine that no row tells of";
    tab.shows(count).await;
    tab.press(count).await;
    assert_eq!(tab.address().await, "/executions/strays");
    let row = |id: Uuid| {
        format!(
            "[...document.querySelectorAll('#strays tbody tr')].find(row => row.innerText.includes('execution-{id}'))"
        )
    };
    for (id, workspace) in [(ended, "acme"), (kept, "acme"), (foreign, "globex")] {
        let words = tab.look(&format!("{}.innerText", row(id))).await;
        let words = words.as_str().unwrap();
        assert!(words.contains(workspace) && words.contains("open"), "{words}");
        let way = format!("{}.querySelector('[rel=noreferrer]').href", row(id));
        let there = format!("https://temporal.example/namespaces/shop/workflows/execution-{id}");
        assert_eq!(tab.look(&way).await, there);
    }
    assert!(tab.barriers().await.is_empty(), "{:?}", tab.barriers().await);
    // It asks first, and a look does nothing.
    tab.and_then_a_page(&format!("{}.querySelector('a.button').click()", row(ended)))
        .await;
    assert!(
        tab.main().await.contains(&format!("Ends execution-{ended}")),
        "{}",
        tab.main().await
    );
    tab.fill("reason", "enqueued again").await;
    assert!(temporal.open().await.contains(&ended));
    tab.act("end-stray", "End it").await;
    assert!(
        tab.main().await.contains("A server ends it as soon as it can."),
        "{}",
        tab.main().await
    );
    eventually("it is ended", async || !temporal.open().await.contains(&ended)).await;
    tab.until("it leaves the list", &format!("{} === undefined", row(ended)))
        .await;
    let open = temporal.open().await;
    assert!(open.contains(&kept) && open.contains(&foreign), "nobody else is");
    let audit = "select count(*) from stationmaster.audit where action = 'execution.end_stray' and audit::text like '%' || $1 || '%' and detail::text like '%enqueued again%' and actor like 'token:%'";
    let audited: i64 = sqlx::query_scalar(audit)
        .bind(ended.to_string())
        .fetch_one(&visit.scene.database.pool)
        .await
        .unwrap();
    assert_eq!(audited, 1, "the audit has it");
    // Whoever has only its id, or what the engine calls it, is led there.
    for text in [kept.to_string(), format!("execution-{kept}")] {
        tab.open(&format!("/jump?q={text}")).await;
        assert_eq!(tab.address().await, "/executions/strays", "{text}");
    }
    // A viewer looks, and a token for one workspace sees no other's.
    let viewer = visit.person(Role::Viewer, None).await;
    viewer.open("/executions/strays").await;
    assert!(viewer.main().await.contains(&format!("execution-{kept}")));
    assert!(!viewer.has("End…").await, "a viewer ends nothing");
    let run = viewer
        .look(&format!("{}.dataset.key", row(kept)))
        .await
        .as_str()
        .unwrap()
        .to_owned();
    viewer.open(&format!("/act/end-stray?id={kept}&run={run}")).await;
    assert!(viewer.main().await.contains("this needs the role operator"));
    let scoped = visit.person(Role::Operator, Some(place.workspace)).await;
    scoped.open("/executions/strays").await;
    assert!(scoped.main().await.contains(&format!("execution-{kept}")));
    assert!(!scoped.main().await.contains(&format!("execution-{foreign}")));
    assert!(tab.complaints().is_empty(), "{:?}", tab.complaints());
}
