//! Every action asks first, does what it says, and is written down under the name of the person.

use stationmaster_client::wire::{
    AlarmQuery, AlarmStatus, AuditQuery, ItemStatus, LockRequest, OccurrenceQuery, QueueQuery,
};
use stationmaster_core::access::Role;

use crate::support::{ENDLESS, eventually};
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_item_is_cancelled_retried_preferred_and_run_again_with_another_input() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let item = visit.item(&place, r#"{"order": 12345678901234567890}"#).await;
    let tab = visit.person(Role::Operator, None).await;
    let path = format!("/queue/{item}");
    tab.open(&path).await;
    tab.press("Priority…").await;
    tab.fill("priority", "7").await;
    assert_eq!(visit.client.queue_item(item).await.unwrap().item.priority, 0);
    tab.act("priority", "Change it").await;
    assert_eq!(tab.address().await, path);
    assert!(tab.main().await.contains("Its priority is 7."));
    assert_eq!(visit.client.queue_item(item).await.unwrap().item.priority, 7);
    tab.press("Cancel…").await;
    assert_eq!(visit.status(item).await, ItemStatus::Pending);
    tab.fill("reason", "a mistake").await;
    tab.act("cancel", "Cancel it").await;
    assert_eq!(visit.status(item).await, ItemStatus::Cancelled);
    tab.open(&path).await;
    assert!(tab.main().await.contains("a mistake"), "{}", tab.main().await);
    tab.press("Retry…").await;
    tab.act("retry", "Retry it").await;
    assert_eq!(visit.status(item).await, ItemStatus::Pending);
    tab.press("Run again…").await;
    // What is no JSON is refused, and what was typed stays.
    tab.fill("input", "{nonsense").await;
    tab.act("run-again", "Run it again").await;
    assert!(tab.main().await.contains("this is no JSON"));
    assert_eq!(
        tab.look("document.querySelector('[name=input]').value").await,
        "{nonsense"
    );
    tab.fill("input", r#"{"order": 98765432109876543210, "again": true}"#)
        .await;
    tab.act("run-again", "Run it again").await;
    let made = tab.address().await.trim_start_matches("/queue/").parse().unwrap();
    assert_ne!(made, item);
    let input = visit.client.queue_item(made).await.unwrap().item.input.unwrap();
    assert!(input.get().contains("98765432109876543210"), "{input}");
    assert!(tab.main().await.contains("98765432109876543210"));
    let audit = AuditQuery::default();
    let lines = visit.client.audit(&audit).await.unwrap().items;
    let by = lines
        .iter()
        .filter(|line| line.actor.starts_with("token:operator"))
        .count();
    assert!(by >= 3, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_is_ended_by_force_and_a_workspace_is_paused_and_widened() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 1, ENDLESS).await;
    let item = visit.item(&place, "{}").await;
    let execution = visit.running(item).await;
    let tab = visit.person(Role::Admin, None).await;
    tab.open(&format!("/executions/{}", execution.id)).await;
    tab.press("End by force…").await;
    tab.act("terminate", "End it by force").await;
    tab.shows("TERMINATED").await;
    tab.open("/workspaces/acme").await;
    tab.press("Pause…").await;
    tab.act("pause-workspace", "Pause it").await;
    assert!(visit.client.workspace(place.workspace).await.unwrap().paused);
    tab.press("Resume…").await;
    tab.act("resume-workspace", "Resume it").await;
    assert!(!visit.client.workspace(place.workspace).await.unwrap().paused);
    tab.press("Plan and limit…").await;
    tab.fill("limit", "4").await;
    tab.act("change-workspace", "Change it").await;
    assert_eq!(visit.client.workspace(place.workspace).await.unwrap().limit, 4);
    assert_eq!(tab.look("document.querySelectorAll('.board li').length").await, 4);
    tab.open(&format!("/workflows/{}", place.workflow)).await;
    tab.press("Run now…").await;
    tab.act("run-now", "Run it").await;
    assert!(tab.address().await.starts_with("/queue/"));
    tab.open(&format!("/workflows/{}", place.workflow)).await;
    tab.press("Pause…").await;
    tab.act("pause-workflow", "Pause it").await;
    assert!(visit.client.workflow(place.workflow).await.unwrap().paused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_is_set_with_a_look_at_its_fires_then_paused_fired_and_made_up_for() {
    let visit = Visit::new().await;
    visit.place("acme", 1, ENDLESS).await;
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/alarms/new").await;
    tab.fill("workspace", "acme").await;
    tab.fill("label", "early bird").await;
    tab.fill("zone", "Europe/Zurich").await;
    tab.fill("cron", "30 2 * * *").await;
    tab.until(
        "its fires are shown",
        "document.querySelectorAll('#preview .fires li').length === 10",
    )
    .await;
    tab.fill("cron", "61 2 * * *").await;
    tab.until(
        "what is wrong is told",
        "document.querySelector('#preview .wrong') !== null",
    )
    .await;
    // What is typed while an answer is under way is asked for as well.
    tab.look(
        "(() => { const real = window.fetch; window.asked = 0; window.fetch = (...all) => { window.asked += 1; \
         return new Promise(go => setTimeout(go, 1000)).then(() => real(...all)); }; })()",
    )
    .await;
    tab.fill("zone", "UTC").await;
    tab.fill("cron", "15 1 * * *").await;
    tab.until("it is asked for", "window.asked === 1").await;
    tab.fill("cron", "45 3 * * *").await;
    tab.until(
        "the last of it is shown",
        "[...document.querySelectorAll('#preview time')].some(time => time.dateTime.includes('T03:45'))",
    )
    .await;
    tab.fill("zone", "Europe/Zurich").await;
    tab.fill("cron", "30 2 * * *").await;
    let none = visit.client.alarms(&AlarmQuery::default()).await.unwrap().items;
    assert!(none.is_empty(), "typing sets nothing");
    tab.act("set-alarm", "Set it").await;
    assert!(
        tab.main().await.contains("The alarm is set."),
        "{}",
        tab.main().await
    );
    let alarm = visit
        .client
        .alarms(&AlarmQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!(
        (alarm.label.as_str(), alarm.cron_expr.as_deref()),
        ("early bird", Some("30 2 * * *"))
    );
    tab.press("Fire now…").await;
    tab.act("fire-alarm", "Fire it now").await;
    let occurrences = async || {
        visit
            .client
            .occurrences(alarm.id, &OccurrenceQuery::default())
            .await
            .unwrap()
            .items
            .len()
    };
    eventually("it fires", async || occurrences().await == 1).await;
    tab.press("Pause…").await;
    tab.act("pause-alarm", "Pause it").await;
    let status = async || visit.client.alarm(alarm.id).await.unwrap().alarm.status;
    assert_eq!(status().await, AlarmStatus::Paused);
    tab.press("Resume…").await;
    tab.act("resume-alarm", "Resume it").await;
    assert_eq!(status().await, AlarmStatus::Active);
    let now = jiff::Timestamp::now();
    tab.press("Backfill…").await;
    tab.fill("from", &(now - jiff::SignedDuration::from_hours(48)).to_string())
        .await;
    tab.fill("to", &now.to_string()).await;
    tab.press("Show which").await;
    assert_eq!(occurrences().await, 1, "a look fires nothing");
    tab.act("backfill", "Fire 2 occurrences").await;
    assert!(
        tab.main().await.contains("Fired 2 occurrences."),
        "{}",
        tab.main().await
    );
    eventually("they are on record", async || occurrences().await == 3).await;
    tab.open("/alarms").await;
    tab.press("Pause all of these…").await;
    tab.act("pause-alarms", "Pause 1 alarm").await;
    assert_eq!(status().await, AlarmStatus::Paused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_locks_servers_and_tokens_are_seen_to() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let lock = LockRequest {
        at_most: 600.0,
        at_least: 0.0,
        owner: Some("a night job".to_owned()),
    };
    visit.client.acquire_lock("nightly", &lock).await.unwrap();
    let sent = stationmaster_client::wire::NewSignal::new("shop", "order.paid");
    let sent = visit.client.send_signal(&sent).await.unwrap();
    let tab = visit.person(Role::Admin, None).await;
    tab.open("/signals?status=DEAD").await;
    tab.shows("unknown_signal").await;
    let trigger = stationmaster_client::wire::TriggerChange {
        workflow_definition_id: place.workflow,
        payload_schema: None,
        priority: Some(0),
    };
    visit
        .client
        .put_trigger(
            "shop",
            "order.paid",
            &stationmaster_client::wire::TriggerPlace::default(),
            &trigger,
        )
        .await
        .unwrap();
    tab.open("/signals?status=DEAD").await;
    tab.press("Replay all dead letters…").await;
    tab.act("replay-all", "Replay 1 dead letter").await;
    eventually("it is routed", async || {
        visit
            .client
            .signal(&sent.id)
            .await
            .unwrap()
            .queue_item_id
            .is_some()
    })
    .await;
    assert_eq!(
        visit
            .client
            .queue(&QueueQuery::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    tab.open("/locks").await;
    tab.press("Free…").await;
    tab.act("release-lock", "Free it").await;
    assert!(!visit.client.lock("nightly").await.unwrap().held);
    tab.open("/servers").await;
    tab.press("Drain…").await;
    tab.act("drain-server", "Drain it").await;
    let draining = async || visit.client.servers().await.unwrap()[0].draining;
    assert!(draining().await);
    tab.shows("draining").await;
    tab.press("Resume…").await;
    tab.act("resume-server", "Resume it").await;
    assert!(!draining().await);
    tab.open("/tokens").await;
    tab.press("Make a token…").await;
    tab.fill("name", "night-shift").await;
    tab.act("create-token", "Make it").await;
    let secret = tab.text("pre").await;
    let own = visit.scene.client(secret.trim()).own_token().await.unwrap();
    assert_eq!((own.name.as_str(), own.role.as_str()), ("night-shift", "viewer"));
    tab.open("/tokens").await;
    assert!(!tab.main().await.contains(secret.trim()));
    tab.and_then_a_page("[...document.querySelectorAll('tr')].find(row => row.innerText.includes('night-shift')).querySelector('a.button').click()")
        .await;
    tab.act("revoke-token", "Revoke it").await;
    assert!(visit.scene.client(secret.trim()).own_token().await.is_err());
}
