//! The id of a dispatcher is the same in Rust and in SQL.

use stationmaster_core::dispatchers::DispatcherId;

use crate::common::Testbed;

#[tokio::test]
async fn the_database_builds_the_same_ids_as_the_program() {
    let testbed = Testbed::new().await;
    let long = "x".repeat(60);
    let names = [
        "shop",
        "Shop",
        "shop-2",
        "shop_2",
        "shop-",
        "-shop",
        "a--b",
        "a b",
        "ÄÖ",
        "İstanbul",
        "日本",
        "a.b",
        "a/b",
        "'; drop",
        "-",
        "_",
        &long,
        "\u{1f682}",
        "ß",
    ];
    for project in names {
        for queue in names {
            let built: String = sqlx::query_scalar("select stationmaster.dispatcher_id($1, $2)")
                .bind(project)
                .bind(queue)
                .fetch_one(testbed.pool())
                .await
                .unwrap();
            assert_eq!(built, DispatcherId::of(project, queue).0, "{project:?} {queue:?}");
        }
    }
}
