//! What changes arrives by itself; and when it cannot, the page says so and keeps what it shows.

use std::time::{Duration, Instant};

use stationmaster_core::access::Role;

use crate::scene::Scene;
use crate::support::{Door, ENDLESS, Launch, Proxy, TestDatabase};
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_arrives_by_itself_and_a_pause_holds_it() {
    let visit = Visit::new().await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/queue").await;
    tab.until(
        "it is live",
        "document.querySelector('#live').dataset.state === 'live'",
    )
    .await;
    let loads = "performance.getEntriesByType('navigation').length + ':' + performance.timeOrigin";
    let before = tab.look(loads).await;
    let first = visit.item(&place, "{}").await;
    let begun = Instant::now();
    let row = |id: uuid::Uuid| format!("document.querySelector('[data-key=\"{id}\"]') !== null");
    tab.until("the row comes", &row(first)).await;
    println!("it took {:?}", begun.elapsed());
    assert_eq!(tab.look(loads).await, before, "the page was not loaded again");
    tab.look("document.querySelector('#pause').click()").await;
    tab.until(
        "it is paused",
        "document.querySelector('#live').dataset.state === 'paused'",
    )
    .await;
    let second = visit.item(&place, "{}").await;
    // Longer than it takes otherwise.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(tab.look(&row(second)).await, false);
    tab.look("document.querySelector('#pause').click()").await;
    tab.until("it goes on", &row(second)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_away_the_last_picture_stays_and_the_page_says_so() {
    let database = TestDatabase::new().await;
    let mut url: url::Url = database.url.parse().unwrap();
    let proxy = Proxy::before(&format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())).await;
    let (host, port) = proxy.address.split_once(':').unwrap();
    url.set_host(Some(host)).unwrap();
    url.set_port(Some(port.parse().unwrap())).unwrap();
    let server = Launch::on(&database)
        .with("DATABASE_URL", url.as_str())
        .start_ready()
        .await;
    let scene = Scene {
        address: server.address().unwrap(),
        core: stationmaster_core::db::Database::new(&database.url, 4).unwrap(),
        server,
        database,
    };
    let visit = Visit::on(scene).await;
    let place = visit.place("acme", 0, ENDLESS).await;
    let item = visit.item(&place, "{}").await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/queue").await;
    let row = format!("document.querySelector('[data-key=\"{item}\"]') !== null");
    tab.until("the row is there", &row).await;
    let late = visit.person(Role::Viewer, None).await;
    proxy.cut();
    proxy.door(Door::Refusing);
    tab.until("it says so", "!document.querySelector('#stale').hidden && document.querySelector('#stale').textContent.includes('This is the picture of')")
        .await;
    assert_eq!(tab.look(&row).await, true);
    // Whoever opens a page only now is told what is wrong, and shown no zero.
    late.open("/").await;
    late.until(
        "it says what is wrong",
        "document.querySelector('.trouble[data-again]') !== null",
    )
    .await;
    assert_eq!(
        late.look("document.querySelectorAll('.tile, .count, table').length")
            .await,
        0
    );
    proxy.door(Door::Open);
    late.until(
        "it comes back by itself",
        "document.querySelector('.trouble') === null",
    )
    .await;
    tab.until(
        "it is live again",
        "document.querySelector('#stale').hidden && document.querySelector('#live').dataset.state === 'live'",
    )
    .await;
    assert_eq!(tab.look(&row).await, true);
    // A database that takes its time: the picture stays, and the page says since when it waits.
    proxy.delay(Duration::from_secs(8));
    tab.until("it says that it waits", "document.querySelector('#stale').textContent.includes('has not answered') && !document.querySelector('#stale').hidden")
        .await;
    assert_eq!(tab.look(&row).await, true);
    proxy.open();
    tab.until(
        "it is live once more",
        "document.querySelector('#stale').hidden && document.querySelector('#live').dataset.state === 'live'",
    )
    .await;
}
