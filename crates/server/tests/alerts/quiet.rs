//! A healthy server with nothing to do: nobody is called.

use std::time::Duration;

use crate::support::{Launch, SHORT, TestDatabase};
use crate::trial::Watch;

/// By the hurried rules every range and every wait is over in this time, twice.
const LONG: Duration = Duration::from_mins(1);
/// These ask about the whole PostgreSQL, which other tests use too.
const OF_ALL: [&str; 2] = ["OldTransaction", "ConnectionsUsedUp"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_server_with_nothing_to_do_raises_no_alert() {
    let database = TestDatabase::new().await;
    let server = Launch::on(&database).start_ready().await;
    // It has done something, so that every metric is there, and rests.
    let workflow = database.workflow(1, SHORT).await;
    database.enqueue(workflow, 1).await;
    database.until_count("COMPLETED", 1).await;
    let address = server.address().unwrap();
    let watch = Watch::on(&[&address], Duration::from_secs(1)).await;
    watch.stays_quiet(LONG, &OF_ALL).await;
}
