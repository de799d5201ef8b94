//! Other languages: the example of the guide, as it stands there, on a real database.

use std::process::{Command, Output};

use crate::support::{GRAPH, TestDatabase};

fn place_order(database: &TestDatabase, workspace: &str, workflow: &str, order: &str) -> Output {
    let python = std::env::var("STATIONMASTER_TEST_PSYCOPG").expect(
        "STATIONMASTER_TEST_PSYCOPG is not set: run these tests with `cargo xtask test`, which sets it",
    );
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/enqueue.py");
    Command::new(python)
        .args([example, &database.url(), workspace, workflow, order])
        .output()
        .expect("Python runs")
}

#[test]
fn a_python_program_enqueues_inside_its_own_transaction() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let placed = place_order(&database, &workspace, &workflow, "17");
    let words = String::from_utf8_lossy(&placed.stderr);
    assert!(placed.status.success(), "{words}");
    let item = String::from_utf8(placed.stdout).unwrap();
    let shown = database.json(&["queue", "show", item.trim()]);
    assert_eq!(
        (&shown["input"]["order"], &shown["idempotency_key"]),
        (&17.into(), &"order-17".into())
    );

    let again = place_order(&database, &workspace, &workflow, "17");
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        item,
        "the key gives the first item"
    );
    let failed = place_order(&database, &workspace, &workflow, "-1");
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stderr).contains("no such order"));
    assert_eq!(
        database.json(&["queue", "list"]).as_array().unwrap().len(),
        1,
        "what was rolled back is not there"
    );
}
