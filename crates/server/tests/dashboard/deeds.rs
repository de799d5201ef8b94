//! What is done more seldom: what waits of a workflow that fails, priorities of many, versions and plans, one dead letter, an alarm for good,
//! and what a crash left behind.

use serde_json::value::RawValue;
use stationmaster_client::wire::{AlarmStatus, ItemStatus, NewAlarm, NewSignal, NewVersion, SignalStatus};
use stationmaster_core::access::Role;

use crate::scene::Scene;
use crate::support::{ENDLESS, eventually};
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_of_a_workflow_that_fails_is_cancelled_and_what_else_waits_gets_another_priority() {
    let visit = Visit::new().await;
    let (failing, sound) = (
        visit.place("acme", 1, ENDLESS).await,
        visit.place("globex", 0, ENDLESS).await,
    );
    visit.failed(&failing, "{}", "the disk is full").await;
    visit.running(visit.item(&failing, "{}").await).await;
    let (waits, other) = (visit.item(&failing, "{}").await, visit.item(&sound, "{}").await);
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/failures").await;
    tab.and_then_a_page("document.querySelector('a.message').click()")
        .await;
    tab.press("Cancel what waits…").await;
    assert!(
        tab.main().await.contains("match"),
        "it says how many: {}",
        tab.main().await
    );
    tab.act("cancel-failing", "Cancel 1 item").await;
    eventually("it is cancelled", async || {
        visit.status(waits).await == ItemStatus::Cancelled
    })
    .await;
    assert_eq!(visit.status(other).await, ItemStatus::Pending);
    tab.open("/queue?workspace=globex").await;
    tab.press("Priority of what waits…").await;
    tab.fill("priority", "8").await;
    tab.act("set-priorities", "Change 1 item").await;
    assert!(
        tab.main().await.contains("Changed the priority of 1 item."),
        "{}",
        tab.main().await
    );
    assert_eq!(visit.client.queue_item(other).await.unwrap().item.priority, 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_is_published_a_plan_is_changed_and_a_paused_workflow_goes_on() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 1, ENDLESS).await;
    let another = NewVersion {
        workflow: RawValue::from_string(ENDLESS.to_owned()).unwrap(),
    };
    let version = async || {
        let workflow = visit.client.workflow(place.workflow).await.unwrap();
        workflow.current_version
    };
    visit
        .client
        .add_version(place.workflow, &another, None)
        .await
        .unwrap();
    assert_eq!(version().await, Some(2));
    let tab = visit.person(Role::Admin, None).await;
    tab.open(&format!("/workflows/{}?version=1", place.workflow))
        .await;
    tab.press("Publish…").await;
    assert_eq!(version().await, Some(2), "a look publishes nothing");
    tab.act("publish-version", "Publish it").await;
    assert_eq!(version().await, Some(1));
    visit.client.pause_workflow(place.workflow).await.unwrap();
    tab.open(&format!("/workflows/{}", place.workflow)).await;
    tab.press("Resume…").await;
    tab.act("resume-workflow", "Resume it").await;
    assert!(!visit.client.workflow(place.workflow).await.unwrap().paused);
    tab.open("/settings").await;
    tab.and_then_a_page(
        "[...document.querySelectorAll('#plans tr')].find(row => row.innerText.startsWith('PRO')).querySelector('a.button').click()",
    )
    .await;
    tab.fill("limit", "7").await;
    tab.act("change-plan", "Change it").await;
    let plans = visit.client.plans().await.unwrap();
    let pro = plans.iter().find(|plan| plan.name == "PRO").unwrap();
    assert_eq!(pro.max_concurrent, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_dead_letter_is_replayed_an_alarm_is_cancelled_and_what_a_crash_left_behind_is_removed() {
    // What is left behind is for whoever reconciles by hand.
    let settings = [
        ("DISPATCHERS__OBSERVE_ONLY", "true"),
        ("DISPATCHERS__SECOND_LOOK", "100ms"),
    ];
    let visit = Visit::on(Scene::with(&settings).await).await;
    let place = visit.place("acme", 1, ENDLESS).await;
    let client = &visit.client;
    let sent = client
        .send_signal(&NewSignal::new("shop", "order.paid"))
        .await
        .unwrap();
    let letter = async || client.signal(&sent.id).await.unwrap();
    eventually("it is a dead letter", async || {
        letter().await.status == SignalStatus::Dead
    })
    .await;
    let tab = visit.person(Role::Admin, None).await;
    tab.open(&format!("/signals/shop/{}", sent.id)).await;
    tab.press("Replay…").await;
    tab.act("replay", "Replay it").await;
    assert_eq!(letter().await.replays, 1);

    let alarm = NewAlarm {
        workspace_id: place.workspace,
        cron_expr: Some("@yearly".to_owned()),
        ..NewAlarm::default()
    };
    let alarm = client.set_alarm(&alarm).await.unwrap().alarm.id;
    tab.open(&format!("/alarms/{alarm}")).await;
    tab.press("Cancel…").await;
    tab.act("cancel-alarm", "Cancel it").await;
    let status = client.alarm(alarm).await.unwrap().alarm.status;
    assert_eq!(status, AlarmStatus::Cancelled);

    let left = "insert into stationmaster.dispatchers (id, project, task_queue, owner, epoch, engine, taken_at, lease_until, resting_since)
                values (stationmaster.dispatcher_id('mill', 'default'), 'mill', 'default', gen_random_uuid(), 1, 'embedded',
                        now() - interval '2 hours', now() - interval '1 hour', now())";
    sqlx::query(left)
        .execute(&visit.scene.database.pool)
        .await
        .unwrap();
    let owner = "select count(*) from stationmaster.dispatchers where project = 'mill' and owner is not null";
    tab.open("/dispatchers").await;
    tab.press("Reconcile…").await;
    assert!(
        tab.main().await.contains("dispatcher-mill-default"),
        "{}",
        tab.main().await
    );
    assert_eq!(
        visit.scene.database.number(owner).await,
        1,
        "a look removes nothing"
    );
    tab.act("reconcile", "Remove what is left behind").await;
    assert!(tab.main().await.contains("Did 1 thing."), "{}", tab.main().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_of_an_alarm_that_is_emptied_is_taken_away_and_without_any_time_it_is_no_alarm() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 1, ENDLESS).await;
    let payload = serde_json::value::to_raw_value(&serde_json::json!({ "n": 1 })).unwrap();
    let alarm = NewAlarm {
        workspace_id: place.workspace,
        label: "morning".to_owned(),
        cron_expr: Some("30 7 * * *".to_owned()),
        timezone: Some("Europe/Zurich".to_owned()),
        target_url: Some("https://hooks.example/wake".to_owned()),
        message: Some("Good morning".to_owned()),
        payload: Some(payload),
        pause_after: Some(3),
        ..NewAlarm::default()
    };
    let id = visit.client.set_alarm(&alarm).await.unwrap().alarm.id;
    let now = async || visit.client.alarm(id).await.unwrap().alarm;
    let tab = visit.person(Role::Operator, None).await;
    tab.open(&format!("/alarms/{id}/edit")).await;
    for name in ["label", "zone", "target", "message", "payload", "pause_after"] {
        let field = format!("document.querySelector('[name={name}]').value");
        assert_ne!(tab.look(&field).await, "", "{name} has a value");
        tab.fill(name, "").await;
    }
    tab.act("change-alarm", "Change it").await;
    let emptied = now().await;
    assert_eq!(
        (
            emptied.label.as_str(),
            emptied.timezone.as_deref(),
            emptied.target_url,
            emptied.message
        ),
        ("", Some("UTC"), None, None),
        "{}",
        tab.main().await
    );
    assert!(emptied.payload.is_none() && emptied.pause_after.is_none());
    assert_eq!(emptied.cron_expr.as_deref(), Some("30 7 * * *"));
    tab.press("Edit").await;
    tab.fill("cron", "").await;
    tab.act("change-alarm", "Change it").await;
    assert!(
        tab.text(".wrong").await.contains("when it fires"),
        "{}",
        tab.main().await
    );
    assert_eq!(now().await.cron_expr.as_deref(), Some("30 7 * * *"));
}
