//! The limit, counted on both sides.

use std::collections::HashMap;
use std::time::Duration;

use uuid::Uuid;

use crate::support::{ENDLESS, Launch, LimitWatch, Temporal, TestDatabase, Work, Worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_never_run_more_on_temporal_than_the_limits_allow() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (narrow, wide) = (
        database.workflow(1, ENDLESS).await,
        database.workflow(3, ENDLESS).await,
    );
    let limits = HashMap::from([(narrow.0, 1), (wide.0, 3)]);
    let launch = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("EXECUTIONS__CLOSE_INTERVAL", "50ms");
    let _servers = [
        launch.start_ready().await,
        launch.start_ready().await,
        launch.start_ready().await,
    ];
    let watch = LimitWatch::on(&database.pool);
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::from_millis(50)));
    database.enqueue(narrow, 12).await;
    database.enqueue(wide, 36).await;

    let (mut looks, mut most) = (0, HashMap::<Uuid, i64>::new());
    while database.count("COMPLETED").await < 48 {
        let open = temporal.open().await;
        // Of which workspace a run is, our own record tells; what it does not know would be a run without an intent.
        let query = "select workspace_id, count(*) from stationmaster.workflow_executions where id = any ($1) group by 1";
        let rows: Vec<(Uuid, i64)> = sqlx::query_as(query)
            .bind(&open)
            .fetch_all(&database.pool)
            .await
            .unwrap();
        let known: i64 = rows.iter().map(|(_, count)| count).sum();
        assert_eq!(
            known,
            i64::try_from(open.len()).unwrap(),
            "every run was intended"
        );
        for (workspace, count) in rows {
            let most = most.entry(workspace).or_default();
            *most = count.max(*most);
            assert!(
                count <= limits[&workspace],
                "{count} open runs, and the limit is {}",
                limits[&workspace]
            );
        }
        looks += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("{looks} looks at the engine; at most {most:?} at once");
    assert!(looks > 20 && most.len() == 2, "{looks} looks, {most:?}");
    watch.assert_kept(&limits);
    database.assert_all_completed_once(48).await;
    temporal
        .assert_one_run_each(database.rows().await.iter().map(|row| row.id))
        .await;
}
