//! Finding one's way: names that were misspelt, anything by its id or name, why each row waits, and who does not answer.

use serde_json::json;
use stationmaster_client::wire::{
    BulkPriority, LockRequest, NewAlarm, NewSignal, OperationKind, OverviewQuery, Waiting,
};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::Scene;
use crate::support::{ENDLESS, eventually};
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misspelt_name_keeps_the_page_and_leads_to_what_may_have_been_meant() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    visit.place("globex", 0, ENDLESS).await;
    let item = visit.item(&place, "{}").await;
    let tab = visit.person(Role::Admin, None).await;
    for path in [
        "/queue?status=PENDING&workspace=acmee",
        "/executions?workspace=acmee",
        "/failures?workspace=acmee",
        "/alarms?workspace=acmee",
        "/workflows?workspace=acmee",
        "/audit?workspace=acmee",
        "/?workspace=acmee",
    ] {
        tab.open(path).await;
        let text = tab.main().await;
        assert!(text.contains("There is no workspace acmee."), "{path}: {text}");
        let typed = "document.querySelector('[name=workspace]').value";
        assert_eq!(tab.look(typed).await, "acmee", "{path}: what was typed stays");
        let way = tab
            .look("[...document.querySelectorAll('main a')].find(a => a.innerText === 'acme').getAttribute('href')")
            .await;
        let way = way.as_str().unwrap_or_default();
        let meant = path.replace("acmee", "acme");
        assert_eq!(way, meant, "the other filters stay");
    }
    // What else is on the first page is there all the same.
    assert!(tab.text("#needs").await.contains("acme can run nothing"));
    tab.open("/queue?status=PENDING&workspace=acmee").await;
    tab.press("acme").await;
    let rows = "[...document.querySelectorAll('#items tbody tr')].map(row => row.dataset.key)";
    assert_eq!(tab.look(rows).await, json!([item.to_string()]));
    // A workflow is looked for in the workspace that is named beside it; a name that several have is told as such.
    tab.open("/queue?workspace=acme&workflow=reprot").await;
    assert!(tab.main().await.contains("There is no workflow reprot."));
    tab.press("report").await;
    assert_eq!(tab.look(rows).await, json!([item.to_string()]));
    tab.open("/queue?workflow=report").await;
    assert!(
        tab.main().await.contains("There are several of the name report"),
        "{}",
        tab.main().await
    );
    tab.press("acme.report").await;
    assert_eq!(tab.look(rows).await, json!([item.to_string()]));
    // Of several workspaces the wrong one is told, and the others stay.
    tab.open("/queue?workspace=acme%2Cglobexx").await;
    tab.press("globex").await;
    assert_eq!(tab.look(rows).await, json!([item.to_string()]));
    assert!(tab.complaints().is_empty(), "{:?}", tab.complaints());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_jump_box_finds_signals_locks_and_dispatchers_by_whatever_they_are_called() {
    let visit = Visit::new().await;
    let client = &visit.client;
    for (project, id) in [("shop", "paid-17"), ("shop", "twice"), ("mill", "twice")] {
        let signal = NewSignal {
            id: Some(id.to_owned()),
            ..NewSignal::new(project, "order.paid")
        };
        client.send_signal(&signal).await.unwrap();
    }
    let lock = LockRequest {
        at_most: 600.0,
        at_least: 0.0,
        owner: None,
    };
    client.acquire_lock("nightly report", &lock).await.unwrap();
    let tab = visit.person(Role::Viewer, None).await;
    for (text, page) in [
        ("paid-17", "/signals/shop/paid-17"),
        ("order.paid", "/signals?name=order.paid"),
        ("nightly report", "/locks?search=nightly+report"),
        ("dispatcher-shop-default", "/dispatchers/dispatcher-shop-default"),
    ] {
        tab.open("/servers").await;
        tab.key("/").await;
        tab.until("the box has the focus", "document.activeElement.id === 'jump'")
            .await;
        tab.call("Input.insertText", json!({ "text": text })).await;
        tab.key("Enter").await;
        tab.until(
            &format!("{text} is found"),
            &format!(
                "location.pathname + location.search === {} && document.readyState === 'complete'",
                json!(page)
            ),
        )
        .await;
    }
    tab.open("/signals?name=order.paid").await;
    let rows = "document.querySelectorAll('#signals tbody tr').length";
    assert_eq!(tab.look(rows).await, 3);
    tab.open("/locks?search=NIGHTLY").await;
    assert!(tab.text("#locks").await.contains("nightly report"));
    // Two projects have one of this id, and both are told.
    tab.open("/jump?q=twice").await;
    let ways = "[...document.querySelectorAll('.found a')].map(a => a.getAttribute('href')).sort()";
    assert_eq!(
        tab.look(ways).await,
        json!(["/signals/mill/twice", "/signals/shop/twice"])
    );
    tab.open("/jump?q=nightly").await;
    tab.press("nightly report").await;
    assert_eq!(tab.address().await, "/locks?search=nightly+report");
    // Locks are nobody's business who sees one workspace.
    let place = visit.place("acme", 1, ENDLESS).await;
    let scoped = visit.person(Role::Viewer, Some(place.workspace)).await;
    scoped.open("/jump?q=nightly").await;
    assert!(scoped.main().await.contains("Nothing is called so"));
    assert!(!scoped.main().await.contains("nightly report"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_jump_box_leads_to_an_operation_and_to_what_the_engine_calls_an_execution() {
    let visit = Visit::new().await;
    let (place, other) = (
        visit.place("acme", 1, ENDLESS).await,
        visit.place("globex", 0, ENDLESS).await,
    );
    let execution = visit.running(visit.item(&place, "{}").await).await.id;
    let all = BulkPriority {
        workspace_id: Some(place.workspace),
        priority: 1,
        ..BulkPriority::default()
    };
    let kind = OperationKind::PrioritiseQueue;
    let operation = visit.client.begin(kind, &all, None).await.unwrap().id;
    let tab = visit.person(Role::Viewer, None).await;
    for (text, page) in [
        (operation.to_string(), format!("/operations/{operation}")),
        (
            format!("execution-{execution}"),
            tab.jumped(&execution.to_string()).await,
        ),
    ] {
        assert_eq!(tab.jumped(&text).await, page);
    }
    assert!(tab.main().await.contains("RUNNING"), "{}", tab.main().await);
    // Whoever may not see what it is done to does not learn of it.
    let scoped = visit.person(Role::Viewer, Some(other.workspace)).await;
    assert!(scoped.jumped(&operation.to_string()).await.starts_with("/jump"));
    assert!(scoped.main().await.contains("Nothing is called so"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_are_told_as_ago_in_the_readers_zone_or_in_utc_on_every_page_from_then_on() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let item = visit.item(&place, "{}").await;
    let tab = visit.person(Role::Viewer, None).await;
    // Nepal's clocks differ from UTC by five hours and three quarters.
    let zone = json!({ "timezoneId": "Asia/Kathmandu" });
    tab.call("Emulation.setTimezoneOverride", zone).await;
    let path = format!("/queue/{item}");
    tab.open(&path).await;
    let told = "document.querySelector('#facts time').textContent";
    let exact = "document.querySelector('#facts time').dateTime.slice(0, 19).replace('T', ' ')";
    let is_ago = format!("/^(now|\\d+ s ago|\\d+ min ago)$/.test({told})");
    tab.until("it is told as ago", &is_ago).await;
    let toggle = "document.querySelector('.choices [name=times]').click()";
    tab.and_then_a_page(toggle).await;
    assert_eq!(tab.address().await, path, "the page stays");
    let utc = tab.look(exact).await.as_str().unwrap().to_owned();
    let there = utc.parse::<jiff::civil::DateTime>().unwrap() + jiff::Span::new().minutes(345);
    let there = there.strftime("%Y-%m-%d %H:%M:%S").to_string();
    tab.until(
        "it is told in the reader's zone",
        &format!("{told} === '{there}'"),
    )
    .await;
    tab.and_then_a_page(toggle).await;
    tab.until("it is told in UTC", &format!("{told} === '{utc} UTC'"))
        .await;
    tab.open("/workspaces").await;
    let first = "document.querySelector('#workspaces time').textContent.endsWith(' UTC')";
    tab.until("other pages tell it so too", first).await;
    tab.and_then_a_page(toggle).await;
    tab.open(&path).await;
    tab.until("it is told as ago again", &is_ago).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_that_waits_says_why_which_position_it_has_and_when_it_is_expected() {
    let visit = Visit::new().await;
    let (full, paused) = (
        visit.place("acme", 1, ENDLESS).await,
        visit.place("globex", 1, ENDLESS).await,
    );
    visit.failed(&full, "{}", "a run whose time is known").await;
    visit.running(visit.item(&full, "{}").await).await;
    visit.client.pause_workspace(paused.workspace).await.unwrap();
    let mut line = Vec::new();
    for _ in 0..9 {
        line.push(visit.item(&full, "{}").await);
    }
    let held = visit.item(&paused, "{}").await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/queue?status=PENDING").await;
    let why = |id: Uuid| format!("document.querySelector('[data-key=\"{id}\"] td.long').innerText");
    for (place, id) in line.iter().enumerate() {
        let told = tab.look(&why(*id)).await;
        let told = told.as_str().unwrap();
        let position = format!("position {}", place + 1);
        assert!(told.starts_with("the workspace is full: 1 of 1 ·"), "{told}");
        assert!(
            told.split(" · ").any(|part| part == position),
            "{position}: {told}"
        );
        assert!(told.contains("about") || told.contains("any moment"), "{told}");
    }
    let told = tab.look(&why(held)).await;
    assert!(
        told.as_str().unwrap().starts_with("its workspace is paused"),
        "{told}"
    );
    // The API tells the same of many as of one, leaves out what does not wait, and shows nobody what is not theirs.
    let mut asked = line.clone();
    asked.push(held);
    asked.push(Uuid::now_v7());
    let waits = visit.client.waits(&asked).await.unwrap();
    assert_eq!((waits.items.len(), waits.counted), (10, 5_000));
    let of = |id: Uuid| waits.items.iter().find(|wait| wait.id == id).unwrap();
    let alone = visit.client.queue_item(line[8]).await.unwrap();
    assert_eq!(of(line[8]).reasons, alone.reasons);
    assert_eq!((of(line[8]).position, alone.position), (Some(9), Some(9)));
    assert_eq!(of(held).reasons[0], Waiting::WorkspacePaused);
    assert_eq!(of(held).expected, None);
    let scoped = visit.scene.token(Role::Viewer, Some(paused.workspace)).await;
    let seen = visit.scene.client(&scoped).waits(&asked).await.unwrap().items;
    assert_eq!(seen.iter().map(|wait| wait.id).collect::<Vec<_>>(), [held]);
    let too_many: Vec<Uuid> = (0..101).map(|_| Uuid::now_v7()).collect();
    assert!(visit.client.waits(&too_many).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_although_it_has_room_is_told_first_and_what_waits_for_its_time_is_not() {
    let visit = Visit::new().await;
    let (place, other) = (
        visit.place("acme", 2, ENDLESS).await,
        visit.place("globex", 2, ENDLESS).await,
    );
    let tab = visit.person(Role::Viewer, None).await;
    // Claims pass over a row that somebody's transaction holds.
    let mut held = visit.scene.database.pool.begin().await.unwrap();
    let lock = "select from stationmaster_internal.workspace_capacity where workspace_id = $1 for update";
    sqlx::query(lock)
        .bind(place.workspace)
        .execute(&mut *held)
        .await
        .unwrap();
    let item = visit.item(&place, "{}").await;
    visit.client.pause_workflow(other.workflow).await.unwrap();
    let parked = visit.item(&other, "{}").await;
    let earlier = "update stationmaster_internal.queue_items set created_at = now() - interval '1 minute' where id = any ($1)";
    sqlx::query(earlier)
        .bind([item, parked])
        .execute(&visit.scene.database.pool)
        .await
        .unwrap();
    tab.open("/").await;
    let words = "acme waits although it has room";
    tab.shows(words).await;
    assert!(
        !tab.text("#needs").await.contains("globex waits"),
        "{}",
        tab.main().await
    );
    tab.press(words).await;
    assert_eq!(tab.address().await, format!("/queue/{item}"));
    held.rollback().await.unwrap();
    tab.open("/").await;
    tab.until(
        "it goes on",
        &format!("!document.querySelector('#needs').innerText.includes('{words}')"),
    )
    .await;
    visit.running(item).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_does_not_answer_is_told_first_since_when_and_gone_once_it_answers() {
    let settings = [("ALARMS__ALLOW_TARGETS", "127.0.0.1")];
    let visit = Visit::on(Scene::with(&settings).await).await;
    let (place, other) = (
        visit.place("acme", 1, ENDLESS).await,
        visit.place("globex", 1, ENDLESS).await,
    );
    // A port that is ours, and at which nobody listens yet.
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = door.local_addr().unwrap();
    drop(door);
    let alarm = NewAlarm {
        workspace_id: place.workspace,
        label: "night watch".to_owned(),
        cron_expr: Some("@yearly".to_owned()),
        target_url: Some(format!("http://{address}/wake")),
        ..NewAlarm::default()
    };
    let alarm = visit.client.set_alarm(&alarm).await.unwrap().alarm.id;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/").await;
    assert!(!tab.text("#needs").await.contains("does not answer"));
    for _ in 0..6 {
        visit.client.fire_alarm(alarm).await.unwrap();
    }
    // The page that is open learns of it.
    let words = format!("Target http://{address} does not answer");
    tab.shows(&words).await;
    let breakers = async |client: &stationmaster_client::Client| {
        client.overview(&OverviewQuery::default()).await.unwrap().breakers
    };
    let told = breakers(&visit.client).await;
    assert_eq!(
        (told.len(), told[0].target.as_str()),
        (1, format!("http://{address}").as_str())
    );
    let since = jiff::Timestamp::now().duration_since(told[0].opened_at);
    assert!(since.as_secs_f64().abs() < 60.0, "since {}", told[0].opened_at);
    assert!(
        tab.text("#needs")
            .await
            .contains(&format!("seen by {}", told[0].server))
    );
    tab.press(&words).await;
    assert!(
        tab.text("#alarms").await.contains("night watch"),
        "{}",
        tab.main().await
    );
    // Whose alarms go there learns of it, and nobody else.
    for (workspace, many) in [(place.workspace, 1), (other.workspace, 0)] {
        let scoped = visit.scene.token(Role::Viewer, Some(workspace)).await;
        let seen = breakers(&visit.scene.client(&scoped)).await;
        assert_eq!(seen.len(), many);
    }
    // Whatever it answers, it answers.
    let door = std::net::TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        while let Ok((mut guest, _)) = door.accept() {
            let _ = guest.read(&mut [0; 4096]);
            let _ =
                guest.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    eventually("it answers a probe", async || {
        breakers(&visit.client).await.is_empty()
    })
    .await;
}
