//! What is drawn: the calendar of all alarms, and a run in its workflow.

use serde_json::json;
use stationmaster_client::wire::NodeState::{Ahead, Failed, Finished, UnderWay};
use stationmaster_client::wire::{CalendarQuery, ExecutionStatus, NewAlarm};
use stationmaster_core::access::Role;

use crate::support::eventually;
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calendar_counts_the_fires_of_all_alarms_and_draws_the_soonest() {
    let visit = Visit::new().await;
    let (acme, globex) = (
        visit.place("acme", 1, crate::support::ENDLESS).await,
        visit.place("globex", 1, crate::support::ENDLESS).await,
    );
    let set = async |workspace, label: String, cron: &str| {
        let alarm = NewAlarm {
            workspace_id: workspace,
            label,
            cron_expr: Some(cron.to_owned()),
            ..NewAlarm::default()
        };
        visit.client.set_alarm(&alarm).await.unwrap();
    };
    // More than are on the page of the list or on a line, and one that fires too often to be drawn.
    let hour = (jiff::Timestamp::now().as_second() / 3600 + 6) % 24;
    for number in 0..120 {
        let daily = format!("0 {hour} * * *");
        set(acme.workspace, format!("daily {number}"), &daily).await;
    }
    set(globex.workspace, "often".to_owned(), "* * * * *").await;
    let asked = async |workspace: Option<&str>, hours| {
        let query = CalendarQuery {
            workspace_id: workspace.map(Into::into),
            hours: Some(hours),
        };
        visit.client.alarm_calendar(&query).await.unwrap()
    };
    let day = asked(None, 24).await;
    assert_eq!((day.fires, day.frequent, day.steps.len()), (120, 1, 24));
    assert_eq!(day.steps.iter().map(|step| step.fires).max(), Some(120));
    let week = asked(Some("acme"), 168).await;
    assert_eq!((week.fires, week.frequent, week.steps.len()), (840, 0, 56));
    let tab = visit.person(Role::Viewer, None).await;
    tab.open("/alarms").await;
    assert!(
        tab.text("#line")
            .await
            .contains("120 fires in all, besides 1 alarm too frequent"),
        "{}",
        tab.text("#line").await
    );
    let drawn = "[document.querySelectorAll('.firing text.name').length, document.querySelectorAll('.firing .often').length]";
    assert_eq!(tab.look(drawn).await, json!([12, 1]));
    tab.press("7 days").await;
    assert!(tab.address().await.contains("ahead=7d"));
    tab.open("/alarms?workspace=acme&ahead=7d").await;
    assert!(tab.text("#line").await.contains("840 fires in all."));
    let dots = "document.querySelectorAll('.firing circle').length";
    assert_eq!(tab.look(dots).await, 12 * 7);
    // Of another workspace nobody is told.
    let scoped = visit.scene.token(Role::Viewer, Some(globex.workspace)).await;
    let seen = visit
        .scene
        .client(&scoped)
        .alarm_calendar(&CalendarQuery::default())
        .await
        .unwrap();
    assert_eq!((seen.fires, seen.frequent, seen.alarms.len()), (0, 1, 1));
}

const WAITS: &str = r#"{"nodes": [{"id": "begin", "type": "noop"}, {"id": "rest", "type": "wait", "seconds": 600}, {"id": "end", "type": "noop"}],
    "edges": [{"from": "begin", "to": "rest"}, {"from": "rest", "to": "end"}]}"#;
const FAILS: &str = r#"{"nodes": [{"id": "begin", "type": "noop"}, {"id": "trip", "type": "fail", "message": "no"}, {"id": "end", "type": "noop"}],
    "edges": [{"from": "begin", "to": "trip"}, {"from": "trip", "to": "end"}]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_an_execution_shows_where_each_node_of_its_workflow_stands() {
    let visit = Visit::new().await;
    let (waits, fails) = (
        visit.place("acme", 1, WAITS).await,
        visit.place("globex", 1, FAILS).await,
    );
    let running = visit.running(visit.item(&waits, "{}").await).await.id;
    let states = async |id| {
        let nodes = visit.client.execution_nodes(id).await.unwrap().nodes;
        nodes.iter().filter_map(|node| node.state).collect::<Vec<_>>()
    };
    eventually("it waits", async || {
        let nodes = visit.client.execution_nodes(running).await.unwrap().nodes;
        nodes[1].until.is_some()
    })
    .await;
    assert_eq!(states(running).await, [Finished, UnderWay, Ahead]);
    let tab = visit.person(Role::Viewer, None).await;
    tab.open(&format!("/executions/{running}")).await;
    let drawn = "[...document.querySelectorAll('#graph svg.graph g')].map(g => g.getAttribute('class') + ' ' + g.querySelector('text.name').textContent)";
    assert_eq!(
        tab.look(drawn).await,
        json!(["finished begin", "at rest", "ahead end"])
    );
    assert!(tab.text("#graph").await.contains("rest waits until"));
    let failed = visit.item(&fails, "{}").await;
    let ended = async || {
        let item = visit.client.queue_item(failed).await.unwrap().item;
        (item.outcome == Some(ExecutionStatus::Failed)).then_some(item.execution_id?)
    };
    eventually("it has failed", async || ended().await.is_some()).await;
    let failed = ended().await.unwrap();
    assert_eq!(states(failed).await, [Finished, Failed, Ahead]);
    tab.open(&format!("/executions/{failed}")).await;
    assert_eq!(
        tab.look(drawn).await,
        json!(["finished begin", "broken trip", "ahead end"])
    );
    // A page that is open follows.
    tab.open(&format!("/executions/{running}")).await;
    visit
        .client
        .complete(
            running,
            &stationmaster_client::wire::Complete {
                status: stationmaster_client::wire::CompleteStatus::Completed,
                output: None,
                error: None,
                force: true,
            },
        )
        .await
        .unwrap();
    tab.until(
        "all are finished",
        "document.querySelectorAll('#graph g.finished').length === 3",
    )
    .await;
    let stranger = visit.scene.token(Role::Viewer, Some(fails.workspace)).await;
    let seen = visit.scene.client(&stranger).execution_nodes(running).await;
    assert!(seen.is_err(), "{seen:?}");
}
