//! What people asked for: views that are kept, time that stays, lists that are sorted, alarms that are changed and paused by the dozen,
//! charts of one server, and whether a higher plan would have helped.

use stationmaster_client::wire::{AlarmChange, AlarmStatus, HistoryQuery, NewAlarm};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::Scene;
use crate::support::{ENDLESS, Temporal, eventually};
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_is_kept_shared_followed_and_forgotten_and_strangers_do_not_learn_of_it() {
    let visit = Visit::new().await;
    let (acme, globex) = (
        visit.place("acme", 0, ENDLESS).await,
        visit.place("globex", 0, ENDLESS).await,
    );
    let item = visit.item(&acme, "{}").await;
    visit.item(&globex, "{}").await;
    let tab = visit.person(Role::Operator, None).await;
    let address = "/queue?status=PENDING&workspace=acme";
    tab.open(&format!("{address}&cursor=")).await;
    tab.press("Keep this view…").await;
    tab.fill("name", "acme waits").await;
    tab.act("keep-view", "Keep it").await;
    assert_eq!(tab.address().await, address);
    assert!(tab.main().await.contains("acme waits is kept."));
    // It is one's own as yet.
    let other = visit.person(Role::Viewer, None).await;
    other.open("/queue").await;
    assert!(!other.main().await.contains("acme waits"));
    // Under the same name, now for all.
    tab.press("Keep this view…").await;
    tab.fill("name", "acme waits").await;
    tab.look("document.querySelector('[name=whom]').value = 'all'")
        .await;
    tab.press("Keep it").await;
    assert_eq!(visit.client.views().await.unwrap().len(), 1, "one name, one view");
    other.open("/queue").await;
    other.press("acme waits").await;
    assert_eq!(other.address().await, address);
    let rows = "[...document.querySelectorAll('#items tbody tr')].map(row => row.dataset.key)";
    assert_eq!(other.look(rows).await, serde_json::json!([item.to_string()]));
    assert!(!other.has("Keep this view…").await, "a viewer keeps nothing");
    other.open("/executions").await;
    assert!(
        !other.main().await.contains("acme waits"),
        "it is a view of the queue"
    );
    // A token for another workspace is told of none, and may not share.
    let scoped = visit.person(Role::Operator, Some(globex.workspace)).await;
    scoped.open("/queue").await;
    assert!(!scoped.main().await.contains("acme waits"));
    scoped.press("Keep this view…").await;
    assert_eq!(
        scoped.look("document.querySelector('[name=whom]')").await,
        serde_json::Value::Null
    );
    tab.open(address).await;
    tab.and_then_a_page("document.querySelector('.forget').click()")
        .await;
    tab.act("forget-view", "Forget it").await;
    assert!(visit.client.views().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_that_was_chosen_stays_from_page_to_page_and_lists_are_sorted_whole() {
    let visit = Visit::new().await;
    // More than are shown at once, and the one that matters is the last of them.
    let many = "insert into stationmaster.workspaces (name, max_concurrent) select 'team-' || lpad(n::text, 3, '0'), n % 7 from generate_series(1, 130) n";
    sqlx::query(many)
        .execute(&visit.scene.database.pool)
        .await
        .unwrap();
    let last = visit.place("zulu", 0, ENDLESS).await;
    for _ in 0..3 {
        visit.item(&last, "{}").await;
    }
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/?since=6h").await;
    tab.and_then_a_page(
        "[...document.querySelectorAll('.places a')].find(a => a.innerText === 'Workspaces').click()",
    )
    .await;
    assert_eq!(tab.address().await, "/workspaces?since=6h");
    let first = "document.querySelector('#workspaces tbody tr td').innerText";
    tab.press("Ready").await;
    assert_eq!(tab.look(first).await, "zulu");
    assert_eq!(
        tab.look("document.querySelector('th[aria-sort]').innerText.trim()")
            .await,
        "Ready ↓"
    );
    tab.press("Ready ↓").await;
    assert_ne!(tab.look(first).await, "zulu");
    tab.press("Workspace").await;
    assert_eq!(tab.look(first).await, "team-001");
    tab.press("Next page").await;
    assert_eq!(tab.look(first).await, "team-101");
    tab.fill("search", "zul").await;
    tab.press("Filter").await;
    assert_eq!(
        tab.look("document.querySelectorAll('#workspaces tbody tr').length")
            .await,
        1
    );
    assert!(
        tab.address().await.contains("since=6h"),
        "{}",
        tab.address().await
    );
    tab.and_then_a_page(
        "[...document.querySelectorAll('.places a')].find(a => a.innerText === 'Queue').click()",
    )
    .await;
    assert_eq!(tab.address().await, "/queue?since=6h");
    assert_eq!(
        tab.look("document.querySelector('[name=since]').value").await,
        "6h"
    );
    // It stays through a page that is about no time, until somebody lets it go.
    let to = async |word: &str| {
        let click = format!(
            "[...document.querySelectorAll('.places a')].find(a => a.innerText === '{word}').click()"
        );
        tab.and_then_a_page(&click).await;
        tab.address().await
    };
    tab.and_then_a_page("document.querySelector('#items td a').click()")
        .await;
    assert_eq!(to("Executions").await, "/executions?since=6h");
    tab.press("Clear").await;
    assert_eq!(to("Failures").await, "/failures");
    // What cannot run comes first on the overview, wherever it stands in the list of workspaces.
    tab.open("/").await;
    assert!(
        tab.text("#needs").await.contains("zulu can run nothing"),
        "{}",
        tab.main().await
    );
    // The box that leads anywhere completes names of every kind.
    tab.key("/").await;
    tab.call("Input.insertText", serde_json::json!({ "text": "zul" }))
        .await;
    tab.until(
        "names are offered",
        "[...document.querySelector('#jump').list.options].some(option => option.value === 'zulu')",
    )
    .await;
    tab.look("document.querySelector('#jump').value = ''").await;
    tab.call("Input.insertText", serde_json::json!({ "text": "repor" }))
        .await;
    tab.until(
        "workflows too",
        "[...document.querySelector('#jump').list.options].some(option => option.value === 'zulu.report')",
    )
    .await;
}

async fn alarm(visit: &Visit, workspace: Uuid, label: &str) -> Uuid {
    let alarm = NewAlarm {
        workspace_id: workspace,
        label: label.to_owned(),
        cron_expr: Some("0 9 * * *".to_owned()),
        ..NewAlarm::default()
    };
    visit.client.set_alarm(&alarm).await.unwrap().alarm.id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_are_paused_and_resumed_by_filter_and_only_those_that_were_shown() {
    let visit = Visit::new().await;
    let (acme, globex) = (
        visit.place("acme", 1, ENDLESS).await,
        visit.place("globex", 1, ENDLESS).await,
    );
    let mut shown = Vec::new();
    for place in 0..3 {
        shown.push(alarm(&visit, acme.workspace, &format!("report {place}")).await);
    }
    let foreign = alarm(&visit, globex.workspace, "report 0").await;
    let another = alarm(&visit, acme.workspace, "clean up").await;
    let status = async |id: Uuid| visit.client.alarm(id).await.unwrap().alarm.status;
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/alarms?workspace=acme&search=report").await;
    tab.press("Pause all of these…").await;
    assert!(
        tab.main().await.contains("3 alarms would fire no more"),
        "{}",
        tab.main().await
    );
    let later = alarm(&visit, acme.workspace, "report 9").await;
    visit.client.cancel_alarm(shown[2]).await.unwrap();
    tab.press("Pause 3 alarms").await;
    assert!(
        tab.main()
            .await
            .contains("Paused 2 alarms. The others had changed meanwhile."),
        "{}",
        tab.main().await
    );
    assert_eq!(status(shown[0]).await, AlarmStatus::Paused);
    assert_eq!(status(shown[1]).await, AlarmStatus::Paused);
    assert_eq!(status(shown[2]).await, AlarmStatus::Cancelled);
    for id in [foreign, another, later] {
        assert_eq!(status(id).await, AlarmStatus::Active);
    }
    tab.open("/alarms?workspace=acme&status=paused").await;
    tab.press("Resume all of these…").await;
    tab.act("resume-alarms", "Resume 2 alarms").await;
    assert_eq!(status(shown[0]).await, AlarmStatus::Active);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_is_changed_with_a_look_at_its_fires_unless_somebody_else_has_changed_it_meanwhile() {
    let visit = Visit::new().await;
    let acme = visit.place("acme", 1, ENDLESS).await;
    let id = alarm(&visit, acme.workspace, "morning").await;
    let tab = visit.person(Role::Operator, None).await;
    tab.open(&format!("/alarms/{id}")).await;
    tab.press("Edit").await;
    let field = |name: &str| format!("document.querySelector('[name={name}]').value");
    assert_eq!(tab.look(&field("cron")).await, "0 9 * * *");
    assert_eq!(tab.look(&field("label")).await, "morning");
    tab.fill("cron", "30 7 * * *").await;
    tab.until(
        "its fires are shown",
        "document.querySelector('#preview').innerText.includes('07:30')",
    )
    .await;
    tab.fill("message", "Good morning").await;
    let now = async || visit.client.alarm(id).await.unwrap().alarm;
    assert_eq!(
        now().await.cron_expr.as_deref(),
        Some("0 9 * * *"),
        "typing changes nothing"
    );
    tab.act("change-alarm", "Change it").await;
    assert!(
        tab.main().await.contains("It is changed."),
        "{}",
        tab.main().await
    );
    let changed = now().await;
    assert_eq!(
        (
            changed.cron_expr.as_deref(),
            changed.message.as_deref(),
            changed.label.as_str()
        ),
        (Some("30 7 * * *"), Some("Good morning"), "morning")
    );
    // What is wrong is told beside what was typed.
    tab.press("Edit").await;
    tab.fill("cron", "61 7 * * *").await;
    tab.press("Change it").await;
    assert_eq!(tab.look(&field("cron")).await, "61 7 * * *");
    assert!(tab.text(".wrong").await.contains("61"), "{}", tab.main().await);
    // Somebody else was faster.
    tab.open(&format!("/alarms/{id}/edit")).await;
    let change = AlarmChange {
        label: Some("early".to_owned()),
        ..AlarmChange::default()
    };
    visit.client.change_alarm(id, &change, None).await.unwrap();
    tab.fill("label", "late").await;
    tab.press("Change it").await;
    assert_eq!(now().await.label, "early", "{}", tab.main().await);
    assert_eq!(tab.look(&field("label")).await, "late");
    // A new one that is refused keeps what was typed, too.
    tab.open("/alarms/new").await;
    tab.fill("workspace", "acme").await;
    tab.fill("label", "never").await;
    tab.fill("cron", "nonsense").await;
    tab.press("Set it").await;
    assert_eq!(tab.look(&field("label")).await, "never");
    assert!(!tab.text(".wrong").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_are_changed_and_reconcile_shows_first_what_it_would_do() {
    let visit = Visit::new().await;
    let acme = visit.place("acme", 1, ENDLESS).await;
    let tab = visit.person(Role::Admin, None).await;
    tab.open(&format!("/workflows/{}", acme.workflow)).await;
    tab.press("Policies…").await;
    tab.fill("max_attempts", "3").await;
    tab.fill("run_timeout", "90").await;
    let workflow = async || visit.client.workflow(acme.workflow).await.unwrap();
    assert_eq!(workflow().await.max_attempts, None, "a look changes nothing");
    tab.act("change-workflow", "Change them").await;
    let changed = workflow().await;
    assert_eq!((changed.max_attempts, changed.run_timeout), (Some(3), Some(90.0)));
    assert!(tab.main().await.contains("1 min 30 s"), "{}", tab.main().await);
    // What a paused workflow holds back is told where its workspace is shown.
    visit.client.pause_workflow(acme.workflow).await.unwrap();
    visit.item(&acme, "{}").await;
    let held = async || {
        let backlog = visit.client.backlog(acme.workspace).await.unwrap();
        backlog.iter().map(|waits| waits.parked).sum::<i64>()
    };
    eventually("it is held", async || held().await == 1).await;
    tab.open("/workspaces/acme").await;
    assert!(
        tab.text("#pending").await.contains("paused"),
        "{}",
        tab.main().await
    );
    tab.open("/dispatchers").await;
    tab.press("Reconcile…").await;
    assert!(
        tab.main().await.contains("0 would be acted upon"),
        "{}",
        tab.main().await
    );
    assert!(
        !tab.has("Remove what is left behind").await,
        "there is nothing to do"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_have_a_line_of_their_last_day_and_can_be_ordered_by_how_many_there_are() {
    let visit = Visit::new().await;
    let acme = visit.place("acme", 9, ENDLESS).await;
    for _ in 0..3 {
        visit.failed(&acme, "{}", "the disk is full").await;
    }
    visit.failed(&acme, "{}", "no such order").await;
    let back = "update stationmaster_internal.failures set at = now() - interval '5 hours 30 minutes' where id = (select min(id) from stationmaster_internal.failures)";
    sqlx::query(back)
        .execute(&visit.scene.database.pool)
        .await
        .unwrap();
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/failures").await;
    let first = "document.querySelector('.groups .message').innerText";
    assert!(tab.look(first).await.as_str().unwrap().contains("no such order"));
    tab.press("most of them").await;
    assert!(
        tab.look(first)
            .await
            .as_str()
            .unwrap()
            .contains("the disk is full")
    );
    // One bar for the hour of the first, one for the others; the rest is empty.
    let bars = "[...document.querySelectorAll('.groups li:first-child .spark rect:not(.faint)')].map(bar => Math.round(bar.getAttribute('x') / 5))";
    assert_eq!(tab.look(bars).await, serde_json::json!([18, 23]));
    assert_eq!(
        tab.look("document.querySelector('.groups .spark').getAttribute('aria-label')")
            .await,
        "at most 2 in an hour of the last day"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_page_says_whether_a_higher_plan_would_have_helped_and_charts_are_cut_by_server() {
    let visit = Visit::new().await;
    let (full, free) = (
        visit.place("full", 1, ENDLESS).await,
        visit.place("free", 5, ENDLESS).await,
    );
    for place in [&full, &free] {
        for _ in 0..3 {
            visit.item(place, "{}").await;
        }
    }
    let running = "select count(*) from stationmaster_internal.executions_active where state = 'RUNNING'";
    eventually("they run", async || {
        visit.scene.database.number(running).await == 4
    })
    .await;
    // The minute is over.
    let now = jiff::Timestamp::now().as_second() / 60 * 60;
    let (from, to) = [now, now + 60]
        .map(|at| jiff::Timestamp::from_second(at).unwrap())
        .into();
    let elsewhere = "update stationmaster_internal.executions_active set dispatched_at = $1::timestamptz + interval '1 second'";
    sqlx::query(elsewhere)
        .bind(from.to_string())
        .execute(&visit.scene.database.pool)
        .await
        .unwrap();
    stationmaster_core::history::count(&visit.scene.core, from, to, true)
        .await
        .unwrap();
    // The server goes on behind it: counted by both, the minute would be there twice.
    let moved = format!(
        "update stationmaster_internal.history_minutes set minute = minute - interval '2 minutes'; update stationmaster_internal.history_servers set minute = minute - interval '2 minutes'; update stationmaster_internal.duties set position = '{to}' where name = 'history'"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(moved))
        .execute(&visit.scene.database.pool)
        .await
        .unwrap();
    let backlog = visit.client.backlog("full").await.unwrap();
    assert_eq!((backlog.len(), backlog[0].ready, backlog[0].parked), (1, 2, 0));
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/workspaces/full").await;
    assert!(
        tab.text(".helped")
            .await
            .starts_with("A higher plan would have helped: in the last 1 h all 1 slots"),
        "{}",
        tab.main().await
    );
    tab.open("/workspaces/free").await;
    assert!(
        tab.text(".helped")
            .await
            .starts_with("A higher plan would not have helped: in the last 1 h at most 3 of 5"),
        "{}",
        tab.main().await
    );
    let server = visit.client.servers().await.unwrap().remove(0);
    let query = HistoryQuery {
        server: Some(server.id.into()),
        ..HistoryQuery::default()
    };
    let chart = visit.client.history_chart(&query).await.unwrap();
    assert_eq!(chart.points.iter().map(|point| point.started).sum::<i64>(), 4);
    assert_eq!(
        chart.points.iter().filter_map(|point| point.active).max(),
        Some(4)
    );
    let nobody = HistoryQuery {
        server: Some(Uuid::now_v7().into()),
        ..HistoryQuery::default()
    };
    assert!(visit.client.history_chart(&nobody).await.is_err());
    tab.open("/").await;
    tab.look("document.querySelector('details.cut').open = true")
        .await;
    tab.fill("server", &server.name).await;
    tab.press("Filter").await;
    assert!(tab.address().await.contains("server="), "{}", tab.address().await);
    let told = "[...document.querySelectorAll('#charts svg[role=img]')].map(chart => chart.getAttribute('aria-label')).join()";
    assert!(
        tab.look(told).await.as_str().unwrap().contains("4 at"),
        "{}",
        tab.look(told).await
    );
    // What one server did is nobody's business who sees one workspace.
    let scoped = visit.scene.token(Role::Viewer, Some(full.workspace)).await;
    assert!(visit.scene.client(&scoped).history_chart(&query).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_on_temporal_leads_to_the_page_where_temporal_shows_it() {
    let temporal = Temporal::shared().await;
    let database = crate::support::TestDatabase::new().await;
    let server = crate::support::Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with(
            "HTTP__TEMPORAL_UI_URL",
            "https://temporal.example/namespaces/shop/",
        )
        .start_ready()
        .await;
    let scene = Scene {
        address: server.address().unwrap(),
        core: stationmaster_core::db::Database::new(&database.url, 4).unwrap(),
        server,
        database,
    };
    let visit = Visit::on(scene).await;
    let acme = visit.place("acme", 1, ENDLESS).await;
    let execution = visit.running(visit.item(&acme, "{}").await).await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open(&format!("/executions/{}", execution.id)).await;
    let link =
        "[...document.querySelectorAll('main a')].find(a => a.innerText === \"in Temporal's UI\").href";
    assert_eq!(
        tab.look(link).await,
        format!(
            "https://temporal.example/namespaces/shop/workflows/execution-{}",
            execution.id
        )
    );
}
