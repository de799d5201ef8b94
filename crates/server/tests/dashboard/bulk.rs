//! What is done to everything that matches is done to what was shown, and to nothing else.

use stationmaster_client::wire::{Cancel, ExecutionStatus, FailureQuery, ItemStatus};
use stationmaster_core::access::Role;

use crate::support::{ENDLESS, eventually};
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_operation_touches_nothing_that_came_after_its_look() {
    let visit = Visit::new().await;
    let (place, other) = (
        visit.place("acme", 0, ENDLESS).await,
        visit.place("globex", 0, ENDLESS).await,
    );
    let (first, second) = (visit.item(&place, "{}").await, visit.item(&place, "{}").await);
    let foreign = visit.item(&other, "{}").await;
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/queue?workspace=acme&status=PENDING").await;
    tab.press("Cancel all of these…").await;
    assert!(tab.main().await.contains("2 items match"), "{}", tab.main().await);
    assert_eq!(
        visit.status(first).await,
        ItemStatus::Pending,
        "a look does nothing"
    );
    let later = visit.item(&place, "{}").await;
    // Away and back: the form is still bound to what it showed.
    tab.look("window.stayed = 1").await;
    tab.fill("note", "not wanted").await;
    tab.act("cancel-all", "Cancel 2 items").await;
    assert!(
        tab.main().await.contains("Cancelled 2 items."),
        "{}",
        tab.main().await
    );
    assert_eq!(visit.status(first).await, ItemStatus::Cancelled);
    assert_eq!(visit.status(second).await, ItemStatus::Cancelled);
    assert_eq!(visit.status(later).await, ItemStatus::Pending);
    assert_eq!(visit.status(foreign).await, ItemStatus::Pending);
    // The way back leads to a look, and going there does nothing.
    tab.and_then_a_page("history.back()").await;
    tab.and_then_a_page("location.reload()").await;
    assert_eq!(visit.status(later).await, ItemStatus::Pending);
    // The same form again is the same wish.
    let again = "(() => { const form = document.querySelector('main form[method=post]'); return new URLSearchParams(new FormData(form)).get('as_of') !== null; })()";
    assert_eq!(tab.look(again).await, true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_set_aside_and_retried_by_group_with_and_without_a_script() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 5, ENDLESS).await;
    let lost = visit.failed(&place, "{}", "order 17 not found").await;
    visit.failed(&place, "{}", "order 18 not found").await;
    visit.failed(&place, "{}", "the disk is full").await;
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/failures").await;
    tab.and_then_a_page(
        "[...document.querySelectorAll('a.message')].find(a => a.innerText.includes('not found')).click()",
    )
    .await;
    tab.shows("2 failures of one kind").await;
    tab.press("Retry all…").await;
    tab.act("retry-failures", "Retry 2 failures").await;
    assert!(
        tab.main().await.contains("Retried 2 failures."),
        "{}",
        tab.main().await
    );
    eventually("they run again", async || {
        visit.status(lost).await == ItemStatus::Dispatched
    })
    .await;
    // The rest without a script.
    tab.call(
        "Emulation.setScriptExecutionDisabled",
        serde_json::json!({ "value": true }),
    )
    .await;
    tab.open("/failures").await;
    assert!(tab.main().await.contains("the disk is full") && !tab.main().await.contains("not found"));
    tab.press("Set all aside…").await;
    tab.fill("note", "bought another").await;
    tab.act("set-failures-aside", "Set aside 1 failure").await;
    assert!(
        tab.main().await.contains("Set aside 1 failure."),
        "{}",
        tab.main().await
    );
    assert!(
        visit
            .client
            .failures(&FailureQuery::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_retried_from_a_list_is_what_the_list_shows() {
    let visit = Visit::new().await;
    let (still, busy) = (
        visit.place("acme", 0, ENDLESS).await,
        visit.place("globex", 5, ENDLESS).await,
    );
    let waited = visit.item(&still, "{}").await;
    visit.client.cancel(waited, &Cancel::default()).await.unwrap();
    let ran = visit.item(&busy, "{}").await;
    let run = visit.running(ran).await.id;
    visit
        .client
        .cancel_execution(run, &Cancel::default())
        .await
        .unwrap();
    let status = async || visit.client.execution(run).await.unwrap().status;
    eventually("its run has closed", async || {
        status().await == ExecutionStatus::Cancelled
    })
    .await;
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/executions?status=CANCELLED").await;
    tab.press("Retry all of these…").await;
    assert!(
        tab.main().await.contains("1 item matches"),
        "{}",
        tab.main().await
    );
    assert!(
        tab.main().await.contains(&ran.to_string()),
        "{}",
        tab.main().await
    );
    tab.open("/queue?status=CANCELLED").await;
    tab.press("Retry all of these…").await;
    assert!(
        tab.main().await.contains("1 item matches"),
        "{}",
        tab.main().await
    );
    tab.act("retry-all", "Retry 1 item").await;
    assert!(
        tab.main().await.contains("Retried 1 item."),
        "{}",
        tab.main().await
    );
    assert_eq!(visit.status(waited).await, ItemStatus::Pending);
    assert_eq!(status().await, ExecutionStatus::Cancelled, "not this one");
    assert_eq!(visit.status(ran).await, ItemStatus::Dispatched);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_narrows_what_is_done_about_failures_and_does_not_hide_what_runs() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 5, ENDLESS).await;
    visit.failed(&place, "{}", "the disk is full").await;
    let tab = visit.person(Role::Operator, None).await;
    tab.open("/failures?since=15m").await;
    tab.press("Retry all…").await;
    let bound = "Date.now() - new Date(document.querySelector('form [name=from]').value) > 14 * 60000";
    assert_eq!(tab.look(bound).await, true, "{}", tab.main().await);
    let execution = visit.running(visit.item(&place, "{}").await).await.id;
    tab.open("/executions?since=1h").await;
    let tally = tab.text("nav.tally").await;
    let tally: Vec<&str> = tally.split_whitespace().collect();
    assert!(tally.windows(2).any(|two| two == ["running", "1"]), "{tally:?}");
    tab.open("/executions?since=1h&status=RUNNING").await;
    let listed = format!("document.querySelector('[data-key=\"{execution}\"]') !== null");
    assert_eq!(tab.look(&listed).await, true, "{}", tab.main().await);
    // A slot tells who holds it; the others are free.
    tab.open("/workspaces/acme").await;
    assert_eq!(
        tab.look("document.querySelectorAll('.board .free').length").await,
        4
    );
    let held = "document.querySelector('.board .taken a').title";
    let held = tab.look(held).await.as_str().unwrap().to_owned();
    assert!(
        held.contains("execution") && held.contains("since") && held.contains("RUNNING"),
        "{held}"
    );
}
