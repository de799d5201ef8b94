//! Several at once: rows that were ticked, and sets so large that the servers do it.

use stationmaster_client::wire::{
    BulkCancel, Enqueue, ExecutionStatus, ItemStatus, NewAlarm, OperationKind, OperationQuery,
    OperationStatus,
};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::support::{ENDLESS, eventually};
use crate::visit::{Place, Visit};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_ticked_by_hand_or_by_key_stay_ticked_and_are_acted_on_and_no_others() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let mut items = Vec::new();
    for _ in 0..4 {
        items.push(visit.item(&place, "{}").await);
    }
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/queue").await;
    let bar = "document.querySelector('#ticked').hidden";
    assert_eq!(tab.look(bar).await, true, "nothing is ticked");
    // The newest is the first row; the key ticks it, a click the one below.
    tab.key("j").await;
    tab.key("x").await;
    let tick = |id: Uuid| format!("document.querySelector('input[name=id][value=\"{id}\"]').click()");
    tab.look(&tick(items[2])).await;
    tab.until(
        "two are ticked",
        "document.querySelector('.ticked-count').textContent === '2 rows ticked'",
    )
    .await;
    // What comes meanwhile takes no tick away and gets none.
    let later = visit.item(&place, "{}").await;
    let ticked = "[...document.querySelectorAll('input[name=id]:checked')].map(box => box.value)";
    tab.until(
        "the list is refreshed",
        &format!("document.querySelector('input[value=\"{later}\"]') !== null"),
    )
    .await;
    let both = serde_json::json!([items[3].to_string(), items[2].to_string()]);
    assert_eq!(tab.look(ticked).await, both);
    tab.press("Priority…").await;
    assert!(
        tab.main().await.contains("2 items, these and no others"),
        "{}",
        tab.main().await
    );
    tab.fill("priority", "6").await;
    tab.act("prefer-these", "Change 2 items").await;
    let priority = async |id| visit.client.queue_item(id).await.unwrap().item.priority;
    assert_eq!((priority(items[2]).await, priority(items[3]).await), (6, 6));
    assert_eq!((priority(items[1]).await, priority(later).await), (0, 0));

    tab.open("/queue").await;
    for id in [items[0], items[1]] {
        tab.look(&tick(id)).await;
    }
    tab.press("Cancel…").await;
    // One of them is gone before the button is pressed; what is new matches every filter, and is not touched.
    visit
        .client
        .cancel(items[1], &stationmaster_client::wire::Cancel::default())
        .await
        .unwrap();
    let newest = visit.item(&place, "{}").await;
    tab.act("cancel-these", "Cancel 2 items").await;
    assert!(
        tab.main()
            .await
            .contains("Cancelled 1 item. The others had moved on"),
        "{}",
        tab.main().await
    );
    for id in [items[0], items[1]] {
        assert_eq!(visit.status(id).await, ItemStatus::Cancelled);
    }
    for id in [items[2], items[3], later, newest] {
        assert_eq!(visit.status(id).await, ItemStatus::Pending);
    }
    // The head ticks all that are shown. Without a script the bar is there as well.
    tab.open("/queue?status=CANCELLED").await;
    tab.look("document.querySelector('.tick-all').click()").await;
    tab.press("Retry…").await;
    tab.act("retry-these", "Retry 2 items").await;
    assert_eq!(visit.status(items[0]).await, ItemStatus::Pending);
    assert!(tab.complaints().is_empty(), "{:?}", tab.complaints());
    let viewer = visit.person(Role::Viewer, None).await;
    viewer.open("/queue").await;
    let boxes = "document.querySelectorAll('input[type=checkbox]').length";
    assert_eq!(viewer.look(boxes).await, 0, "a viewer ticks nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_that_are_ticked_are_cancelled_or_retried_and_no_others() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 9, ENDLESS).await;
    let mut running = Vec::new();
    for _ in 0..3 {
        running.push(visit.running(visit.item(&place, "{}").await).await);
    }
    let mut failed = Vec::new();
    for _ in 0..2 {
        failed.push(visit.failed(&place, "{}", "the disk is full").await);
    }
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/executions?status=RUNNING").await;
    assert_eq!(
        tab.look("document.querySelector('#ticked').hidden").await,
        true,
        "nothing is ticked"
    );
    // A box stands for the item, whatever its execution is called.
    let tick = |id: Uuid| format!("document.querySelector('#executions input[value=\"{id}\"]').click()");
    for execution in &running[..2] {
        tab.look(&tick(execution.queue_item_id)).await;
    }
    tab.until(
        "two are ticked",
        "document.querySelector('.ticked-count').textContent === '2 rows ticked'",
    )
    .await;
    tab.press("Cancel…").await;
    assert!(
        tab.main().await.contains("2 items, these and no others"),
        "{}",
        tab.main().await
    );
    tab.act("cancel-these", "Cancel 2 items").await;
    let status = async |id: Uuid| visit.client.execution(id).await.unwrap().status;
    eventually("they are cancelled", async || {
        let first = status(running[0].id).await == ExecutionStatus::Cancelled;
        first && status(running[1].id).await == ExecutionStatus::Cancelled
    })
    .await;
    assert_eq!(status(running[2].id).await, ExecutionStatus::Running);
    tab.open("/executions?status=FAILED").await;
    tab.look(&tick(failed[0])).await;
    tab.press("Retry…").await;
    tab.act("retry-these", "Retry 1 item").await;
    let outcome = async |id: Uuid| visit.client.queue_item(id).await.unwrap().item.outcome;
    eventually("it runs again", async || {
        outcome(failed[0]).await != Some(ExecutionStatus::Failed)
    })
    .await;
    assert_eq!(outcome(failed[1]).await, Some(ExecutionStatus::Failed));
    assert!(tab.complaints().is_empty(), "{:?}", tab.complaints());
    let viewer = visit.person(Role::Viewer, None).await;
    viewer.open("/executions").await;
    let boxes = "document.querySelectorAll('input[type=checkbox]').length";
    assert_eq!(viewer.look(boxes).await, 0, "a viewer ticks nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_that_are_ticked_are_paused_and_no_others() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 1, ENDLESS).await;
    let mut alarms = Vec::new();
    for label in ["one", "two", "three"] {
        let alarm = NewAlarm {
            workspace_id: place.workspace,
            label: label.to_owned(),
            cron_expr: Some("@daily".to_owned()),
            ..NewAlarm::default()
        };
        alarms.push(visit.client.set_alarm(&alarm).await.unwrap().alarm.id);
    }
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/alarms").await;
    for id in &alarms[..2] {
        tab.look(&format!(
            "document.querySelector('input[value=\"{id}\"]').click()"
        ))
        .await;
    }
    tab.press("Pause…").await;
    tab.press("Pause 2 alarms").await;
    let mut paused = Vec::new();
    for id in &alarms {
        paused.push(visit.client.alarm(*id).await.unwrap().alarm.status.to_string());
    }
    assert_eq!(paused, ["paused", "paused", "active"]);
}

/// More than are done while somebody waits for a page.
const MANY: usize = 1_001;

async fn crowd(visit: &Visit, place: &Place) -> Vec<Uuid> {
    let mut made = Vec::new();
    let one = || Enqueue::new(place.workspace, place.workflow);
    while made.len() < MANY {
        let part = (MANY - made.len()).min(1_000);
        let answers = visit
            .client
            .enqueue_all((0..part).map(|_| one()).collect())
            .await
            .unwrap();
        made.extend(answers.into_iter().map(|answer| answer.id));
    }
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_much_is_done_by_the_servers_on_a_page_that_lives_and_can_be_ended_and_taken_up_again() {
    let visit = Visit::new().await;
    let (place, other) = (
        visit.place("acme", 0, ENDLESS).await,
        visit.place("globex", 0, ENDLESS).await,
    );
    let items = crowd(&visit, &place).await;
    let foreign = visit.item(&other, "{}").await;
    // A server that takes no work begins with nothing.
    let server = visit.client.servers().await.unwrap().remove(0).id;
    visit
        .client
        .drain_server(server, &stationmaster_client::wire::Drain::default())
        .await
        .unwrap();
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/queue?workspace=acme&status=PENDING").await;
    tab.press("Cancel all of these…").await;
    assert!(
        tab.main().await.contains("The servers do it"),
        "{}",
        tab.main().await
    );
    let later = visit.item(&place, "{}").await;
    tab.fill("note", "too many").await;
    tab.act("cancel-all", "Cancel 1001 items").await;
    let page = tab.address().await;
    assert!(page.starts_with("/operations/"), "{page}");
    assert!(
        tab.text("#progress").await.contains("0 of 1,001"),
        "{}",
        tab.main().await
    );
    tab.press("Cancel…").await;
    tab.act("cancel-operation", "End it").await;
    tab.shows("CANCELLED").await;
    assert_eq!(visit.status(items[0]).await, ItemStatus::Pending);
    tab.press("Do the rest…").await;
    tab.act("resume-operation", "Do the rest").await;
    let rest = tab.address().await;
    assert!(rest.starts_with("/operations/") && rest != page, "{rest}");
    assert_eq!(
        visit
            .client
            .operations(&OperationQuery::default())
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    // The page is not asked for again by anybody: it lives.
    visit.client.resume_server(server).await.unwrap();
    tab.shows("COMPLETED").await;
    tab.shows("1,001 of 1,001").await;
    let id = rest.trim_start_matches("/operations/");
    eventually("it is over", async || {
        visit.client.operation(id).await.unwrap().status == OperationStatus::Completed
    })
    .await;
    for id in [items[0], items[MANY - 1]] {
        assert_eq!(visit.status(id).await, ItemStatus::Cancelled);
    }
    for id in [later, foreign] {
        assert_eq!(visit.status(id).await, ItemStatus::Pending, "it came later");
    }
    tab.open("/operations").await;
    assert!(
        tab.main().await.contains("Cancel items") && tab.main().await.contains("COMPLETED"),
        "{}",
        tab.main().await
    );
    assert!(tab.complaints().is_empty(), "{:?}", tab.complaints());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rest_of_an_operation_is_not_done_by_whoever_would_reach_further() {
    let visit = Visit::new().await;
    let (own, foreign) = (
        visit.place("acme", 0, ENDLESS).await,
        visit.place("globex", 0, ENDLESS).await,
    );
    let item = visit.item(&own, "{}").await;
    visit.item(&foreign, "{}").await;
    let server = visit.client.servers().await.unwrap().remove(0).id;
    visit
        .client
        .drain_server(server, &stationmaster_client::wire::Drain::default())
        .await
        .unwrap();
    // Everything, to a token for one workspace, is what is in it.
    let token = visit.scene.token(Role::Operator, Some(own.workspace)).await;
    let scoped = visit.scene.client(&token);
    let all: BulkCancel = BulkCancel {
        all: true,
        ..BulkCancel::default()
    };
    let kind = OperationKind::CancelQueue;
    let operation = scoped.begin(kind, &all, None).await.unwrap();
    assert_eq!(operation.total, 1);
    scoped.cancel_operation(operation.id).await.unwrap();
    let page = format!("/operations/{}", operation.id);
    let tab = visit.person(Role::Operator, None).await;
    tab.open(&page).await;
    tab.press("Do the rest…").await;
    assert!(
        tab.main().await.contains("for other workspaces than yours") && !tab.has("Do the rest").await,
        "{}",
        tab.main().await
    );
    let tab = visit.person(Role::Operator, Some(own.workspace)).await;
    tab.open(&page).await;
    tab.press("Do the rest…").await;
    tab.act("resume-operation", "Do the rest").await;
    visit.client.resume_server(server).await.unwrap();
    tab.shows("COMPLETED").await;
    assert_eq!(visit.status(item).await, ItemStatus::Cancelled);
}
