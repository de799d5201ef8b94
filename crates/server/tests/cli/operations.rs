//! What servers do while nobody waits, what happened minute by minute, and filters of several values.

use serde_json::Value;

use crate::served::Served;
use crate::support::{GRAPH, text, written};

/// Workspaces of these names in which nothing starts, each with a workflow `work` and so many items.
fn workspaces(served: &Served, names: &[&str], items: &str) {
    let graph = written(GRAPH);
    let path = graph.path().to_str().unwrap();
    for name in names {
        served.done(&["workspaces", "create", name, "--limit", "0"]);
        served.done(&[
            "workflows",
            "create",
            "work",
            "--workspace",
            name,
            "--graph",
            path,
        ]);
        let add = [
            "queue",
            "add",
            "--workspace",
            name,
            "--workflow",
            "work",
            "--count",
        ];
        served.done(&[&add[..], &[items]].concat());
    }
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|one| text(one, "id"))
        .collect()
}

#[test]
fn what_is_detached_is_done_by_the_server_and_can_be_waited_for() {
    let served = Served::start();
    workspaces(&served, &["north", "south", "east"], "3");
    let cancel = [
        "queue",
        "cancel-all",
        "--workspace",
        "north,south",
        "--yes",
        "--detach",
    ];
    let said = served.done(&cancel);
    assert!(said.contains("stationmaster operations wait "), "{said}");
    let begun: Vec<&str> = said.split_whitespace().filter(|word| word.len() == 36).collect();
    assert_eq!(begun.len(), 2, "one for each workspace: {said}");
    let waited = served.done(&["operations", "wait", begun[0], begun[1]]);
    assert_eq!(
        waited.matches("COMPLETED: changed 3 items").count(),
        2,
        "{waited}"
    );
    let listed = served.json(&["operations", "list", "--status", "completed,running"]);
    assert_eq!(ids(&listed).len(), 2);
    let shown = served.done(&["operations", "show", &begun[0][..34]]);
    assert!(
        shown.contains("cancel_queue") && shown.to_lowercase().contains("as of"),
        "{shown}"
    );
    let late = served.refused(4, &["operations", "cancel", begun[0]]);
    assert!(late.contains("has ended before: it is COMPLETED"), "{late}");
    served.refused(3, &["operations", "show", "00000000"]);

    // Nothing matches any more, so there is nothing to begin; and a bad end is a failure.
    let nothing = served.done(&cancel);
    assert!(nothing.contains("Matching: 0 items"), "{nothing}");
    served.refused(2, &["queue", "cancel-all", "--all", "--dry-run", "--detach"]);
    // On a database alone nobody may be there to do it: it stays on record until a server is.
    let retried = served.database.json(&[
        "queue",
        "retry-all",
        "--workspace",
        "north",
        "--end-reason",
        "refused,quarantined",
        "--dry-run",
    ]);
    assert_eq!(retried["matching"], 0);
    let begun = served.database.json(&[
        "queue",
        "retry-all",
        "--workspace",
        "north,south",
        "--status",
        "cancelled",
        "--yes",
        "--detach",
    ]);
    let begun = ids(&begun);
    let waited = served.json(&["operations", "wait", &begun[0], &begun[1]]);
    assert_eq!(
        (&waited[0]["status"], &waited[1]["done"]),
        (&"COMPLETED".into(), &3.into())
    );
}

#[test]
fn filters_of_workspaces_take_several_values() {
    let served = Served::start();
    workspaces(&served, &["north", "south", "east"], "2");
    let list = |arguments: &[&str]| ids(&served.json(arguments));
    let of = |names: &str| list(&["queue", "list", "--workspace", names]);
    let (north, south) = (of("north"), of("south"));
    let both: Vec<String> = south.iter().chain(&north).cloned().collect();
    assert_eq!(of("north,south"), both, "newest first, whosever they are");
    assert_eq!(
        list(&[
            "queue",
            "list",
            "--workspace",
            "south",
            "--workspace",
            "north",
            "--status",
            "pending,failed",
            "--workflow",
            "work"
        ]),
        both
    );
    for noun in ["executions", "alarms", "failures"] {
        assert!(list(&[noun, "list", "--workspace", "north,south"]).is_empty());
    }
    served.refused(3, &["queue", "list", "--workspace", "north,nowhere"]);
    let priority = served.json(&[
        "queue",
        "priority-all",
        "9",
        "--workspace",
        "north,south",
        "--yes",
    ]);
    assert_eq!(priority["changed"], 4);
}

#[test]
fn the_history_is_a_table_with_pictures_by_steps_or_by_workspaces() {
    let served = Served::start();
    workspaces(&served, &["north", "south"], "2");
    let chart = served.json(&["history", "--since", "1h"]);
    assert_eq!(chart["step_seconds"], 300);
    let points = chart["points"].as_array().unwrap().len();
    assert!((12..=13).contains(&points), "{points}");
    let table = served.done(&["history", "--since", "1h", "--step", "15m"]);
    for word in ["ENQUEUED", "WAIT P95", "Completed"] {
        assert!(table.contains(word), "{table}");
    }
    // Two minutes ago, as if they had been counted.
    served.database.execute(
        "insert into stationmaster_internal.history_minutes
             (workspace_id, minute, workflow_definition_id, moved, enqueued, started, completed, failed, cancelled, terminated, timed_out,
              alarms_fired, alarms_failed, alarms_late, wait_seconds, wait_longest, run_seconds, run_longest)
         select w.id, date_trunc('minute', now()) - interval '2 minutes', d.id, 9, 9, 9, 6, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0
         from stationmaster.workspaces w join stationmaster.workflow_definitions d on d.workspace_id = w.id where w.name = 'north'",
    );
    let sums = served.json(&["history", "--by", "workspace"]);
    assert_eq!(
        sums.as_array().unwrap().len(),
        1,
        "those of which something is known: {sums}"
    );
    assert_eq!(
        (&sums[0]["name"], &sums[0]["completed"], &sums[0]["failed"]),
        (&"north".into(), &6.into(), &3.into())
    );
    let table = served.done(&["history", "--by", "workflow", "--workspace", "north"]);
    assert!(table.contains("north.work") && table.contains('█'), "{table}");
    served.refused(2, &["history", "--by", "workspace", "--step", "1m"]);
    served.refused(3, &["history", "--workspace", "nowhere"]);
}
