//! A page that stays open: what it holds does not grow, and it rests while nobody looks.

use std::time::{Duration, Instant};

use serde_json::json;
use stationmaster_client::wire::{Complete, CompleteStatus};
use stationmaster_core::access::Role;

use crate::browser::Tab;
use crate::crowd;
use crate::support::{ENDLESS, SHORT, eventually};
use crate::visit::{Place, Visit};

/// What a page holds, after everything is thrown away that can be.
#[derive(Debug, Clone, Copy)]
struct Held {
    heap: f64,
    nodes: f64,
    /// Of the nodes, those that are on the page.
    shown: f64,
    listeners: f64,
    documents: f64,
}

impl Held {
    /// Nodes that nobody sees: of a refresh that has just been, or kept by somebody.
    fn unseen(self) -> f64 {
        self.nodes - self.shown
    }
}

/// Several looks, of which the one counts that found the least beside the page: a refresh under way holds what it is about to let go.
async fn held(tab: &Tab) -> Held {
    let mut least: Option<Held> = None;
    for _ in 0..5 {
        let now = look(tab).await;
        if least.is_none_or(|least| now.unseen() < least.unseen()) {
            least = Some(now);
        }
        if now.unseen() < 300.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    least.unwrap()
}

async fn look(tab: &Tab) -> Held {
    for _ in 0..2 {
        tab.call("HeapProfiler.collectGarbage", json!({})).await;
    }
    let told = tab.call("Performance.getMetrics", json!({})).await;
    let metrics = told["metrics"].as_array().unwrap();
    let of = |name: &str| {
        let found = metrics.iter().find(|metric| metric["name"] == name);
        found.and_then(|metric| metric["value"].as_f64()).unwrap()
    };
    let count = "document.evaluate('count(//node())', document, null, XPathResult.NUMBER_TYPE).numberValue";
    Held {
        heap: of("JSHeapUsedSize"),
        nodes: of("Nodes"),
        shown: tab.look(count).await.as_f64().unwrap(),
        listeners: of("JSEventListeners"),
        documents: of("Documents"),
    }
}

/// Only what is measured is listened to: whoever listens holds things too.
async fn measured(tab: &Tab) {
    for domain in ["Network", "Log", "Runtime"] {
        tab.call(&format!("{domain}.disable"), json!({})).await;
    }
    tab.call("Performance.enable", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_holds_no_more_after_many_refreshes_than_after_the_first() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    for _ in 0..60 {
        visit.item(&place, "{}").await;
    }
    let tab = visit.person(Role::Viewer, None).await;
    measured(&tab).await;
    tab.open("/queue").await;
    // Somebody comes back to the page: it asks again at once.
    let refresh = async |tab: &Tab| {
        let item = visit.item(&place, "{}").await;
        tab.look("document.dispatchEvent(new Event('visibilitychange'))")
            .await;
        tab.until(
            "the row comes",
            &format!("document.querySelector('[data-key=\"{item}\"]') !== null"),
        )
        .await;
    };
    for _ in 0..10 {
        refresh(&tab).await;
    }
    let before = held(&tab).await;
    for _ in 0..60 {
        refresh(&tab).await;
    }
    let after = held(&tab).await;
    println!("{before:?}\n{after:?}");
    // A page of fifty rows has over a thousand nodes: one that is kept would show.
    assert!(
        after.unseen() < before.unseen() + after.shown / 2.0,
        "{before:?} {after:?}"
    );
    assert!(after.listeners <= before.listeners + 2.0, "{before:?} {after:?}");
    assert!(after.documents <= before.documents + 2.0, "{before:?} {after:?}");
    assert!(
        after.heap < before.heap * 1.5 + 1_000_000.0,
        "{before:?} {after:?}"
    );
}

/// Something happens all the time.
async fn goings_on(visit: &Visit, places: &[Place], until: Instant) {
    let mut turn = 0_usize;
    while Instant::now() < until {
        for place in places {
            let item = visit.item(place, &format!(r#"{{"turn": {turn}}}"#)).await;
            turn += 1;
            if turn.is_multiple_of(7) {
                let end = Complete {
                    status: CompleteStatus::Failed,
                    output: None,
                    force: true,
                    error: Some(
                        serde_json::value::to_raw_value(
                            &json!({ "message": format!("order {turn} not found") }),
                        )
                        .unwrap(),
                    ),
                };
                if let Some(execution) = visit
                    .client
                    .queue_item(item)
                    .await
                    .ok()
                    .and_then(|found| found.item.execution_id)
                {
                    let _ = visit.client.complete(execution, &end).await;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes as long as one wants: cargo xtask pages --open MINUTES"]
async fn pages_left_open_hold_no_more_than_at_first() {
    let minutes: u64 = crate::support::setting("STATIONMASTER_PAGES_OPEN")
        .parse()
        .unwrap();
    let visit = Visit::new().await;
    let (quick, slow) = (
        visit.place("acme", 3, SHORT).await,
        visit.place("globex", 2, ENDLESS).await,
    );
    let item = visit.item(&quick, "{}").await;
    visit.failed(&slow, "{}", "order 1 not found").await;
    eventually("it has run", async || {
        visit.status(item).await != stationmaster_client::wire::ItemStatus::Pending
    })
    .await;
    let alarm = stationmaster_client::wire::NewAlarm {
        workspace_id: quick.workspace,
        label: "every minute".to_owned(),
        cron_expr: Some("* * * * *".to_owned()),
        ..Default::default()
    };
    visit.client.set_alarm(&alarm).await.unwrap();
    let _ = visit
        .client
        .send_signal(&stationmaster_client::wire::NewSignal::new("shop", "order.paid"))
        .await;
    let _ = visit.item(&slow, "{}").await;
    let _ = visit.running(visit.item(&slow, "{}").await).await;
    eventually("there is a dispatcher", async || {
        let query = stationmaster_client::wire::DispatcherQuery::default();
        !visit.client.dispatchers(&query).await.unwrap().items.is_empty()
    })
    .await;
    for _ in 0..5 {
        visit.item(&slow, "{}").await;
    }
    let mut tabs: Vec<(String, Tab)> = Vec::new();
    let all = crowd::pages(&visit.client).await;
    let live = all.into_iter().filter(|path| {
        let seldom = [
            "/tokens",
            "/settings",
            "/audit",
            "/locks",
            "/workflows",
            "/dispatchers",
        ];
        !path.contains('?') && !path.starts_with("/act") && !seldom.contains(&path.as_str())
    });
    for path in live {
        let tab = visit.person(Role::Admin, None).await;
        measured(&tab).await;
        tab.open(&path).await;
        tabs.push((path, tab));
    }
    let until = Instant::now() + Duration::from_mins(minutes);
    let places = [quick, slow];
    let work = goings_on(&visit, &places, until);
    let looking = async {
        println!(
            "{:>7} {:50} {:>8} {:>8} {:>8} {:>9}",
            "minute", "page", "heap kB", "nodes", "shown", "listeners"
        );
        let begun = Instant::now();
        // The first minute is for what is made once.
        let mut next = begun + Duration::from_mins(1);
        let mut first = Vec::new();
        let mut last = Vec::new();
        while last.is_empty() || Instant::now() < until {
            tokio::time::sleep_until(next.into()).await;
            next = (next + Duration::from_mins(minutes.div_ceil(6))).min(until + Duration::from_secs(1));
            last.clear();
            for (path, tab) in &tabs {
                let now = held(tab).await;
                println!(
                    "{:>7.1} {path:50} {:>8.0} {:>8} {:>8} {:>9}",
                    begun.elapsed().as_secs_f64() / 60.0,
                    now.heap / 1024.0,
                    now.nodes,
                    now.shown,
                    now.listeners
                );
                last.push(now);
            }
            if first.is_empty() {
                first.clone_from(&last);
            }
        }
        let mut grown = Vec::new();
        for (((path, tab), before), after) in tabs.iter().zip(first).zip(last) {
            // It was alive to the end: who holds nothing because nothing comes any more has proved nothing.
            // On a machine that is busy an answer may be late just now; then it comes back by itself.
            let lives = "document.querySelector('#live').dataset.state === 'live'";
            tab.until(&format!("{path} lives"), lives).await;
            if after.heap > before.heap * 1.5 + 1_000_000.0
                || after.listeners > before.listeners + 5.0
                || after.unseen() > before.unseen() + after.shown + 300.0
            {
                grown.push(format!("{path} {before:?} {after:?}"));
            }
        }
        assert!(grown.is_empty(), "{grown:#?}");
    };
    tokio::join!(work, looking);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_nobody_looks_at_rests_and_is_fresh_when_somebody_does() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/queue").await;
    let first = visit.item(&place, "{}").await;
    let row = |id: uuid::Uuid| format!("document.querySelector('[data-key=\"{id}\"]') !== null");
    tab.until("it is live", &row(first)).await;
    let other = tab.beside().await;
    tab.until("nobody looks at it", "document.visibilityState === 'hidden'")
        .await;
    let asked = "performance.getEntriesByType('resource').filter(e => e.initiatorType === 'fetch').length";
    // What was under way when it was left may still come.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = tab.look(asked).await;
    let second = visit.item(&place, "{}").await;
    // Longer than it takes otherwise.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(tab.look(asked).await, before, "it asks for nothing");
    assert_eq!(tab.look(&row(second)).await, false);
    drop(other);
    tab.call("Page.bringToFront", json!({})).await;
    tab.until("it is fresh", &row(second)).await;
}
