//! Every page: it shows what is there, as text, to everybody, and asks nobody else for anything.

use stationmaster_client::wire::{
    BulkPriority, DispatcherQuery, FailureQuery, LockRequest, NewAlarm, NewSignal, OperationKind,
    SignalStatus, TriggerChange, TriggerPlace,
};
use stationmaster_core::access::Role;

use crate::support::{ENDLESS, eventually};
use crate::visit::{HOSTILE, Visit};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_shows_what_is_there_as_text_and_keeps_nobody_out() {
    let visit = Visit::new().await;
    let client = &visit.client;
    let place = visit.place("acme", 1, ENDLESS).await;
    let input = format!(
        r#"{{"big": 12345678901234567890, "note": {}}}"#,
        serde_json::json!(HOSTILE)
    );
    let failed = visit
        .failed(&place, &input, &format!("no such order {HOSTILE}"))
        .await;
    let running = visit.item(&place, "{}").await;
    let execution = visit.running(running).await;
    let waiting = visit.item(&place, &input).await;
    let alarm = NewAlarm {
        workspace_id: place.workspace,
        label: HOSTILE.to_owned(),
        cron_expr: Some("0 9 * * MON-FRI".to_owned()),
        timezone: Some("Europe/Zurich".to_owned()),
        ..NewAlarm::default()
    };
    let alarm = client.set_alarm(&alarm).await.unwrap().alarm.id;
    let trigger = TriggerChange {
        workflow_definition_id: place.workflow,
        payload_schema: None,
        priority: Some(3),
    };
    client
        .put_trigger("shop", "order.paid", &TriggerPlace::default(), &trigger)
        .await
        .unwrap();
    let signal = NewSignal {
        id: Some(HOSTILE.to_owned()),
        ..NewSignal::new("shop", HOSTILE)
    };
    client.send_signal(&signal).await.unwrap();
    eventually("it is a dead letter", async || {
        client.signal_of("shop", HOSTILE).await.unwrap().status == SignalStatus::Dead
    })
    .await;
    let lock = LockRequest {
        at_most: 600.0,
        at_least: 0.0,
        owner: Some(HOSTILE.to_owned()),
    };
    client.acquire_lock("nightly", &lock).await.unwrap();
    let group = client.failures(&FailureQuery::default()).await.unwrap().items;
    let group = group
        .iter()
        .find(|group| group.message.contains("no such order"))
        .unwrap()
        .id
        .clone();
    let dispatcher = client
        .dispatchers(&DispatcherQuery::default())
        .await
        .unwrap()
        .items[0]
        .id
        .clone();

    let all = BulkPriority {
        workspace_id: Some(place.workspace),
        priority: 1,
        ..BulkPriority::default()
    };
    let kind = OperationKind::PrioritiseQueue;
    let operation = client.begin(kind, &all, None).await.unwrap().id.to_string();
    eventually("it is over", async || {
        client.operation(&operation).await.unwrap().status.has_ended()
    })
    .await;

    let tab = visit.person(Role::Admin, None).await;
    let pages: Vec<(String, Vec<&str>)> = vec![
        (
            "/".into(),
            vec![
                "no such order",
                "dead letter",
                "1 workspace full",
                "acme",
                "At 09:00 on Monday to Friday",
                "ready",
            ],
        ),
        (
            "/failures".into(),
            vec!["no such order", HOSTILE, "acme", "report"],
        ),
        (
            format!("/failures/{group}"),
            vec!["no such order", "12345678901234567890", "Retry all"],
        ),
        (
            "/queue".into(),
            vec!["PENDING", "the workspace is full: 1 of 1", "position 1"],
        ),
        (
            format!("/queue/{waiting}"),
            vec![
                "Why it waits",
                "12345678901234567890",
                "<script>window.hacked=1</script>",
                "The slots are held by",
            ],
        ),
        (
            format!("/queue/{failed}"),
            vec!["FAILED", "no such order", "Retry", "curl"],
        ),
        ("/executions".into(), vec!["RUNNING", "FAILED"]),
        (
            format!("/executions/{}", execution.id),
            vec!["RUNNING", "Time line", "End by force"],
        ),
        ("/workspaces".into(), vec!["acme", "1 of 1"]),
        (
            "/workspaces/acme".into(),
            vec!["It is full", "report", "What waits"],
        ),
        ("/workflows".into(), vec!["report", "acme"]),
        (
            format!("/workflows/{}?version=1", place.workflow),
            vec!["night", "Policies", "Version 1", "current"],
        ),
        ("/alarms".into(), vec![HOSTILE, "active"]),
        (
            format!("/alarms/{alarm}"),
            vec!["Coming fires", "Europe/Zurich", "0 9 * * MON-FRI"],
        ),
        ("/alarms/new".into(), vec!["Set an alarm"]),
        ("/signals".into(), vec!["DEAD", HOSTILE, "order.paid"]),
        (
            format!("/dispatchers/{}", urlencode(&dispatcher)),
            vec!["epoch", "Servers that stand by"],
        ),
        ("/dispatchers".into(), vec!["shop"]),
        ("/locks".into(), vec!["nightly", "held", HOSTILE]),
        (
            "/operations".into(),
            vec!["Change the priority of items", "1 of 1", "COMPLETED"],
        ),
        (
            format!("/operations/{operation}"),
            vec!["Bound to", "what came later is not touched", "by token:"],
        ),
        (
            "/queue?workspace=acmme".into(),
            vec!["There is no workspace", "acme"],
        ),
        ("/servers".into(), vec!["ready", "embedded"]),
        ("/audit".into(), vec!["workspace."]),
        ("/tokens".into(), vec!["admin", "everywhere"]),
        ("/settings".into(), vec!["FREE", "PRO"]),
        ("/health".into(), vec!["findings"]),
        ("/executions/strays".into(), vec!["There is none"]),
        (
            "/runbooks".into(),
            vec!["StationmasterEngineAway", "The engine does not answer"],
        ),
        (
            "/runbooks/dispatch-stalled".into(),
            vec!["What users notice", "pg_terminate_backend(PID)"],
        ),
        ("/jump?q=nothing-like-it".into(), vec!["Nothing is called so"]),
    ];
    // All that is wrong is told at once.
    let mut wrong = Vec::new();
    for (path, words) in &pages {
        tab.open(path).await;
        let text = tab.main().await;
        let missing = words.iter().filter(|word| !text.contains(**word));
        wrong.extend(missing.map(|word| format!("{path} does not say {word}:\n{text}")));
        for (theme, width) in [("light", 1280), ("dark", 1280), ("light", 390)] {
            tab.appear(theme, width, 900).await;
            let barriers = tab.barriers().await;
            wrong.extend(
                barriers
                    .into_iter()
                    .map(|barrier| format!("{path}, {theme}, {width}: {barrier}")),
            );
            if tab
                .look("document.documentElement.scrollWidth > innerWidth")
                .await
                == true
            {
                wrong.push(format!("{path} does not fit {width}"));
            }
        }
        tab.appear("light", 1280, 900).await;
    }
    wrong.extend(tab.complaints());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(tab.look("window.hacked === undefined").await, true);
}

fn urlencode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_page_is_small() {
    let visit = Visit::new().await;
    for name in ["a", "b", "c"] {
        let place = visit.place(name, 5, ENDLESS).await;
        for _ in 0..6 {
            visit.item(&place, "{}").await;
        }
    }
    let tab = visit.person(Role::Viewer, None).await;
    let size = tab
        .look("fetch('/').then(a => a.text()).then(async page => { let size = new Blob([page]).size; for (const e of document.querySelectorAll('script[src], link[href]')) size += (await (await fetch(e.src || e.href)).blob()).size; return size; })")
        .await;
    // Without compression; that makes it a quarter.
    let size = size.as_u64().unwrap();
    assert!((10_000..100_000).contains(&size), "{size}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_are_in_the_address_and_survive_reload_paging_and_the_way_back() {
    let visit = Visit::new().await;
    let (one, other) = (
        visit.place("acme", 0, ENDLESS).await,
        visit.place("globex", 0, ENDLESS).await,
    );
    let mut items = Vec::new();
    for _ in 0..60 {
        items.push(visit.item(&one, r#"{"colour": "red"}"#).await);
    }
    let (oldest, wanted, newest) = (items[0], items[30], items[59]);
    let change = stationmaster_client::wire::QueueItemChange { priority: 9 };
    visit.client.change_queue_item(wanted, &change).await.unwrap();
    visit.item(&other, r#"{"colour": "blue"}"#).await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/queue").await;
    assert!(tab.main().await.contains("globex"));
    tab.fill("workspace", "acm").await;
    tab.until(
        "the name is completed",
        "document.querySelector('[name=workspace]').list.querySelector('option[value=acme]') !== null",
    )
    .await;
    tab.fill("workspace", "acme").await;
    tab.look("document.querySelector('[name=status]').value = 'PENDING'")
        .await;
    tab.press("Filter").await;
    let rows = "document.querySelectorAll('#items tbody tr').length";
    let address = tab.address().await;
    assert!(
        address.contains("workspace=acme") && address.contains("status=PENDING"),
        "{address}"
    );
    assert_eq!(tab.look(rows).await, 50);
    assert!(!tab.text("#items").await.contains("globex"));
    tab.open(&address).await;
    assert_eq!(
        tab.look("document.querySelector('[name=workspace]').value").await,
        "acme"
    );
    tab.press("Next page").await;
    assert_eq!(tab.look(rows).await, 10);
    assert_eq!(
        tab.look("document.querySelector('[name=status]').value").await,
        "PENDING"
    );
    tab.and_then_a_page("history.back()").await;
    assert_eq!(tab.address().await, address);
    assert_eq!(tab.look(rows).await, 50);

    // The heads sort the whole list, and what is in each status is told and led to.
    let first = "document.querySelector('#items tbody tr').dataset.key";
    tab.press("Enqueued ↓").await;
    assert_eq!(tab.look(first).await, oldest.to_string());
    tab.press("Next page").await;
    assert_eq!(tab.look(rows).await, 10);
    tab.press("Enqueued ↑").await;
    assert_eq!(tab.look(first).await, newest.to_string());
    tab.press("Priority").await;
    assert_eq!(tab.look(first).await, wanted.to_string());
    assert!(tab.main().await.contains("in the order in which it goes"));
    let tally = "document.querySelector('.tally').textContent";
    let told = tab.look(tally).await;
    assert!(told.as_str().unwrap().contains("waiting 60"), "{told}");
    tab.and_then_a_page("document.querySelector('.tally a[href*=CANCELLED]').click()")
        .await;
    assert!(
        tab.address().await.contains("workspace=acme") && tab.address().await.contains("status=CANCELLED")
    );
    assert!(tab.main().await.contains("Nothing matches."));
    tab.press("all").await;
    assert_eq!(tab.look(rows).await, 50);
    tab.open("/queue?search=blue").await;
    assert_eq!(tab.look(rows).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_the_jump_box_lead_anywhere() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let (first, second) = (visit.item(&place, "{}").await, visit.item(&place, "{}").await);
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/queue").await;
    tab.key("j").await;
    tab.key("j").await;
    // The newest is the first row.
    tab.until(
        "the second row is chosen",
        &format!("document.querySelector('.chosen')?.dataset.key === '{first}'"),
    )
    .await;
    tab.key("k").await;
    tab.key("Enter").await;
    tab.until(
        "the row is open",
        &format!("location.pathname === '/queue/{second}'"),
    )
    .await;
    tab.until("the page is whole", "document.readyState === 'complete'")
        .await;
    tab.key("g").await;
    tab.key("f").await;
    tab.until("failures are shown", "location.pathname === '/failures'")
        .await;
    tab.until("the page is whole", "document.readyState === 'complete'")
        .await;
    tab.key("?").await;
    tab.until("the keys are told", "document.querySelector('#keys').open")
        .await;
    for (text, path) in [
        (first.to_string(), format!("/queue/{first}")),
        ("acme".to_owned(), "/workspaces/acme".to_owned()),
        ("acme.report".to_owned(), format!("/workflows/{}", place.workflow)),
    ] {
        tab.open("/servers").await;
        tab.key("/").await;
        tab.until("the box has the focus", "document.activeElement.id === 'jump'")
            .await;
        tab.call("Input.insertText", serde_json::json!({ "text": text }))
            .await;
        tab.key("Enter").await;
        tab.until(
            &format!("{text} is found"),
            &format!(
                "location.pathname === {} && document.readyState === 'complete'",
                serde_json::json!(path)
            ),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_and_colours_are_as_the_reader_wants_them() {
    let visit = Visit::new().await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.call(
        "Emulation.setTimezoneOverride",
        serde_json::json!({ "timezoneId": "Asia/Tokyo" }),
    )
    .await;
    tab.open("/servers").await;
    let started = "document.querySelector('#servers td time').textContent";
    tab.until("how long ago", &format!("/ago|now/.test({started})"))
        .await;
    let press = "document.querySelector('form.choices button[name=times]').click()";
    tab.and_then_a_page(press).await;
    let iso = tab
        .look("document.querySelector('#servers td time').dateTime")
        .await;
    let at: jiff::Timestamp = iso.as_str().unwrap().parse().unwrap();
    let local = at
        .in_tz("Asia/Tokyo")
        .unwrap()
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string();
    tab.until("in the reader's zone", &format!("{started} === '{local}'"))
        .await;
    tab.and_then_a_page(press).await;
    let utc = at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    tab.until("in UTC", &format!("{started} === '{utc}'")).await;
    tab.open("/").await;
    let point = "document.querySelector('#charts g[data-at] > title')";
    tab.until(
        "charts tell UTC",
        &format!("/^[0-9-]+ [0-9:]+ UTC: /.test({point}.textContent)"),
    )
    .await;
    tab.and_then_a_page(press).await;
    tab.until(
        "and the reader's zone",
        &format!("new Date({point}.textContent.slice(0, 19)).getTime() === new Date({point}.parentNode.dataset.at).getTime() - new Date({point}.parentNode.dataset.at).getTime() % 1000"),
    )
    .await;
    let ink = "getComputedStyle(document.body).backgroundColor";
    tab.appear("light", 1280, 900).await;
    let light = tab.look(ink).await;
    for _ in 0..2 {
        tab.and_then_a_page("document.querySelector('form.choices button[name=theme]').click()")
            .await;
    }
    assert_eq!(tab.look("document.documentElement.dataset.theme").await, "dark");
    assert_ne!(tab.look(ink).await, light);
    tab.open("/queue").await;
    assert_eq!(tab.look("document.documentElement.dataset.theme").await, "dark");
}
