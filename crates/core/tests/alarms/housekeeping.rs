//! What is over is kept for its time and then removed; what is not over stays.

use crate::bed::{Bed, YEARLY};
use crate::common::eventually;
use crate::common::receiver::Reply;

#[tokio::test]
async fn what_is_past_its_retention_is_removed_and_nothing_else() {
    let bed = Bed::new().await;
    bed.receiver.next("/old", [Reply::status(500)]);
    let server = bed.server().await;
    let old = bed.now("/old").await;
    bed.next_try(old, 1).await;
    bed.until(old, "fired").await;
    let young = bed.now("/young").await;
    bed.until(young, "fired").await;
    let living = bed.set(bed.cron(YEARLY, "/living")).await;
    bed.testbed
        .run(&format!(
            "update stationmaster_internal.occurrences_finished set finished_at = now() - interval '31 days' where alarm_id = '{old}';
             update stationmaster_internal.alarm_standings set ended_at = now() - interval '31 days' where alarm_id = '{old}'"
        ))
        .await;
    eventually("the old one is gone", async || {
        bed.testbed.count("alarm_definitions").await == 2
    })
    .await;
    let left = format!(
        "select (select count(*) from stationmaster_internal.alarm_standings where alarm_id = '{old}')
              + (select count(*) from stationmaster_internal.alarm_events where alarm_id = '{old}')
              + (select count(*) from stationmaster_internal.occurrence_tries where alarm_id = '{old}')
              + (select count(*) from stationmaster.alarm_occurrences where alarm_id = '{old}')"
    );
    assert_eq!(bed.testbed.number(&left).await, 0);
    assert_eq!(bed.status(young).await, "fired");
    assert_eq!(bed.status(living).await, "active");
    server.stop().await;
}
