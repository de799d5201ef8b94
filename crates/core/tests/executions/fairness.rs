//! Fairness: a large backlog does not keep the small ones waiting, and weights share what there is.

use stationmaster_core::catalogue::{self, Plan};
use stationmaster_core::executions::Settings;
use stationmaster_core::id::WorkspaceId;

use crate::common::{NOOP, Testbed, brisk};

/// The places, from 1, at which the items of a workspace were claimed among all. Claims of one batch come in the order
/// of arrival within the batch, which says nothing; so they share their first place.
async fn places(testbed: &Testbed, workspace: WorkspaceId) -> Vec<i64> {
    let query = "select place from (
                     select workspace_id, rank() over (order by claimed_at) as place
                     from stationmaster_internal.executions_finished) ranked
                 where workspace_id = $1 order by place";
    sqlx::query_scalar(query)
        .bind(workspace)
        .fetch_all(testbed.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn under_a_zipf_load_small_workspaces_are_served_early() {
    const WORKSPACES: usize = 30;
    let testbed = Testbed::new().await;
    let mut tenants = Vec::new();
    let mut all = 0;
    for rank in 1..=WORKSPACES {
        let tenant = testbed.tenant(1000, NOOP).await;
        // The first has a quarter of everything and was there first.
        let items = 900 / rank;
        testbed.enqueue_many(tenant, items).await;
        all += items;
        tenants.push((tenant.0, items));
    }
    let server = testbed
        .server(Settings {
            batch_size: 20,
            ..brisk()
        })
        .await;
    testbed.finishes(i64::try_from(all).unwrap()).await;

    // Served in turn, a workspace with n items is done when everybody has had up to n.
    for (workspace, items) in &tenants {
        let fair: usize = tenants.iter().map(|(_, others)| others.min(items)).sum();
        let last = *places(&testbed, *workspace).await.last().unwrap();
        let bound = i64::try_from(fair + fair / 5 + 2 * WORKSPACES).unwrap();
        assert!(
            last <= bound,
            "{items} items: the last was claimed at place {last}, fair is {fair}"
        );
        let first = places(&testbed, *workspace).await[0];
        let bound = i64::try_from(2 * WORKSPACES).unwrap();
        assert!(
            first <= bound,
            "{items} items: the first was claimed at place {first}"
        );
    }
    server.stop().await;
}

/// The part of the heavy workspaces in the first half of all claims, when each kind has as many workspaces as told.
async fn heavy_share(workspaces: usize, batch_size: usize) -> f64 {
    let testbed = Testbed::new().await;
    for (name, weight) in [("LIGHT", 1.0), ("HEAVY", 4.0)] {
        let plan = Plan {
            name: name.to_owned(),
            max_concurrent: 10_000,
            weight,
        };
        catalogue::put_plan(&testbed.database, &plan, None).await.unwrap();
    }
    let mut heavy = Vec::new();
    for _ in 0..workspaces {
        for plan in ["LIGHT", "HEAVY"] {
            let workspace = testbed.workspace_on(plan).await;
            let definition = testbed.definition(workspace, NOOP).await;
            testbed
                .enqueue_many((workspace, definition), 500 / workspaces)
                .await;
            heavy.extend((plan == "HEAVY").then_some(workspace));
        }
    }
    let server = testbed
        .server(Settings {
            batch_size,
            ..brisk()
        })
        .await;
    testbed.finishes(1000).await;
    server.stop().await;
    // Half of the way both still had plenty to do.
    let query = "select count(*) filter (where workspace_id = any ($1))::double precision / count(*)
                 from (select workspace_id from stationmaster_internal.executions_finished order by claimed_at limit 500) half";
    sqlx::query_scalar(query)
        .bind(heavy)
        .fetch_one(testbed.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn weights_of_one_and_four_share_one_to_four() {
    let share = heavy_share(1, 50).await;
    assert!(
        (0.75..=0.85).contains(&share),
        "the heavy one had {share} of what was claimed"
    );
}

/// A claim serves everybody who is ready, one item each at least; over many claims the weights must still show.
#[tokio::test]
async fn weights_show_when_there_are_as_many_workspaces_as_a_batch_holds() {
    let share = heavy_share(5, 10).await;
    assert!(
        (0.7..=0.9).contains(&share),
        "the heavy ones had {share} of what was claimed"
    );
}

/// Who was away for long does not come back with a claim on all that was missed: others go on beside it.
#[tokio::test]
async fn a_resumed_workspace_does_not_keep_the_others_waiting() {
    let testbed = Testbed::new().await;
    let (sleeper, steady) = (testbed.tenant(1000, NOOP).await, testbed.tenant(1000, NOOP).await);
    let server = testbed.server(brisk()).await;
    testbed.pause(sleeper.0, true).await;
    testbed.enqueue_many(sleeper, 100).await;
    testbed.enqueue_many(steady, 200).await;
    testbed.finishes(200).await;
    server.stop().await;

    testbed.enqueue_many(steady, 50).await;
    testbed.pause(sleeper.0, false).await;
    let server = testbed
        .server(Settings {
            batch_size: 4,
            ..brisk()
        })
        .await;
    testbed.finishes(350).await;
    let query = "select count(*) from stationmaster_internal.executions_finished
                 where workspace_id = $1 and claimed_at < (
                     select max(claimed_at) from stationmaster_internal.executions_finished where workspace_id = $2)";
    let query = sqlx::query_scalar::<_, i64>(query).bind(sleeper.0).bind(steady.0);
    let before: i64 = query.fetch_one(testbed.pool()).await.unwrap();
    assert!(
        before <= 75,
        "{before} of the resumed workspace's 100 went before the last of the other's 50"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_workspace_that_was_idle_does_not_precede_all_others_on_a_server_that_has_just_started() {
    let testbed = Testbed::new().await;
    let idle = testbed.tenant(1, NOOP).await;
    // Virtual time went on while it rested.
    testbed
        .run("update stationmaster_internal.attention set virtual_time = 1000 where lane = 'executions'")
        .await;
    let server = testbed.server(brisk()).await;
    let item = testbed.enqueue(idle).await;
    testbed.reaches(item, "COMPLETED").await;
    let entered = "select count(*) from stationmaster_internal.workspace_capacity where virtual_time >= 1000";
    assert_eq!(testbed.number(entered).await, 1, "it enters where the others are");
    server.stop().await;
}

#[tokio::test]
async fn the_smallest_weight_there_is_holds_nobody_up() {
    let testbed = Testbed::new().await;
    let (light, other) = (testbed.tenant(5, NOOP).await, testbed.tenant(5, NOOP).await);
    let tiny = "insert into stationmaster.plans (name, max_concurrent, weight) values ('TINY', 1, 1e-308)";
    let refused = sqlx::query(tiny).execute(testbed.pool()).await;
    assert!(refused.is_err(), "no plan has such a weight");
    // One that came in before there was a bound.
    sqlx::query(
        "update stationmaster_internal.workspace_capacity set weight = 1e-308 where workspace_id = $1",
    )
    .bind(light.0)
    .execute(testbed.pool())
    .await
    .unwrap();
    testbed.enqueue_many(light, 5).await;
    testbed.enqueue_many(other, 5).await;
    let server = testbed.server(brisk()).await;
    testbed.finishes(10).await;
    server.stop().await;
}
