//! What happened in each minute, as the API tells it: counted by a server, and each token sees its own.

use jiff::{SignedDuration, Timestamp};
use reqwest::{Method, StatusCode};
use sqlx::AssertSqlSafe;
use stationmaster_client::wire::{HistoryChart, HistoryQuery};
use stationmaster_core::access::Role;

use crate::scene::{ENDLESS, Scene, answer};
use crate::support::eventually;

fn sum(chart: &HistoryChart) -> (i64, i64) {
    let points = &chart.points;
    (
        points.iter().map(|point| point.completed).sum(),
        points.iter().map(|point| point.alarms_late).sum(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_makes_up_for_the_minutes_before_it_came_and_each_token_sees_its_own() {
    let scene = Scene::new().await;
    let (one, other) = (scene.tenant(1, ENDLESS).await, scene.tenant(1, ENDLESS).await);
    for (tenant, count) in [(one, 3), (other, 4)] {
        let ended = format!(
            "with ended as (select stationmaster.new_id() as id from generate_series(1, {count}))
             insert into stationmaster_internal.executions_finished (execution_id, item_id, workspace_id, workflow_definition_id, item_status,
                 status, attempts, recoveries, finished_at, finished_by)
             select id, id, '{}', '{}', 'DISPATCHED', 'COMPLETED', 1, 0, now() - interval '4 minutes', 'a test' from ended;
             with alarm as (insert into stationmaster_internal.alarm_definitions (workspace_id, kind, fire_at) values ('{0}', 'once', now()) returning id)
             insert into stationmaster_internal.occurrences_finished (alarm_id, scheduled_for, origin, status, due_at, fired_at, finished_at)
             select id, now(), 'schedule', 'fired', now() - interval '5 minutes', now() - interval '4 minutes', now() - interval '4 minutes' from alarm",
            tenant.workspace, tenant.workflow
        );
        sqlx::raw_sql(AssertSqlSafe(ended))
            .execute(&scene.database.pool)
            .await
            .unwrap();
    }
    // As if no server had been there since.
    let forget = "update stationmaster_internal.duties set position = now() - interval '30 minutes' where name = 'history'";
    eventually("a server has the duty", async || {
        sqlx::query(forget)
            .execute(&scene.database.pool)
            .await
            .unwrap()
            .rows_affected()
            == 1
    })
    .await;
    let client = scene.admin().await;
    let all = HistoryQuery::default();
    // A server looks every half minute.
    eventually("it is counted", async || {
        sum(&client.history_chart(&all).await.unwrap()) == (7, 2)
    })
    .await;
    let chart = client.history_chart(&all).await.unwrap();
    assert!((60..=61).contains(&chart.points.len()) && chart.step_seconds == 60);
    assert!(chart.counted_until.unwrap() > Timestamp::now() - SignedDuration::from_mins(3));

    let of_one = HistoryQuery {
        workspace: Some(one.workspace.into()),
        step: Some("30m".to_owned()),
        ..HistoryQuery::default()
    };
    assert_eq!(sum(&client.history_chart(&of_one).await.unwrap()), (3, 1));
    let of_workflow = HistoryQuery {
        workflow: Some(other.workflow.into()),
        ..HistoryQuery::default()
    };
    assert_eq!(sum(&client.history_chart(&of_workflow).await.unwrap()), (4, 0));

    let tenant = scene.token(Role::Viewer, Some(one.workspace)).await;
    assert_eq!(
        sum(&scene.client(&tenant).history_chart(&all).await.unwrap()),
        (3, 1)
    );
    let foreign = scene.client(&tenant).history_chart(&of_workflow).await;
    assert!(
        foreign.map_or(true, |chart| sum(&chart) == (0, 0)),
        "another's workflow"
    );

    for (query, field) in [
        ("step=90s", "step"),
        ("step=soon", "step"),
        (
            "from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&step=1m",
            "step",
        ),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from"),
    ] {
        let path = format!("/v1/history?{query}");
        let (status, body) = answer(scene.ask(Method::GET, &path, Some(&tenant))).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{query}: {body}");
        assert_eq!(body["errors"][0]["field"], field, "{query}: {body}");
    }
}
