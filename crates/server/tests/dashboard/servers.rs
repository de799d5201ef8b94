//! What people learn of servers that go.

use stationmaster_core::access::Role;

use crate::support::{Launch, eventually};
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_lost_is_told_also_when_others_have_taken_over_until_it_is_back() {
    let visit = Visit::new().await;
    let launch = Launch::on(&visit.scene.database).with("SERVER_NAME", "station-2");
    let mut other = launch.start_ready().await;
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/").await;
    tab.shows("2 servers at work").await;
    other.kill();
    // Buried: it is on the list of those that are there no more.
    eventually("the other one buries it", async || {
        visit.client.servers().await.unwrap().len() == 1
    })
    .await;
    let words = "Server station-2 was lost and is not back";
    tab.shows(words).await;
    assert!(
        !tab.text("#needs").await.contains("All in order"),
        "{}",
        tab.main().await
    );
    tab.press(words).await;
    let row = "[...document.querySelectorAll('#servers tbody tr')].find(row => row.innerText.includes('station-2')).innerText";
    let row = tab.look(row).await;
    assert!(row.as_str().unwrap().contains("lost"), "{row}");
    tab.open("/").await;
    let _back = launch.start_ready().await;
    tab.shows("All in order").await;
    assert!(!tab.text("#needs").await.contains("station-2"));
}
