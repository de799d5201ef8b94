//! Other languages: the example of the guide, as it stands there, on a real database. What needs more than a database and Python is
//! run by `cargo xtask examples`.

use std::process::{Command, Output};

use crate::support::{GRAPH, TestDatabase, written};

fn place_order(database: &TestDatabase, order: &str, amount: &str) -> Output {
    let python = std::env::var("STATIONMASTER_TEST_PSYCOPG").expect(
        "STATIONMASTER_TEST_PSYCOPG is not set: run these tests with `cargo xtask test`, which sets it",
    );
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/python/place_order.py"
    );
    Command::new(python)
        .args([example, order, amount])
        .env("DATABASE_URL", database.url())
        .output()
        .expect("Python runs")
}

#[test]
fn a_python_program_enqueues_inside_its_own_transaction() {
    let database = TestDatabase::migrated();
    let tables = include_str!("../../../../docs/examples/orders.sql");
    for table in tables.split(';').filter(|table| !table.trim().is_empty()) {
        database.execute(table);
    }
    let graph = written(GRAPH);
    let graph = graph.path().to_str().expect("a path in UTF-8");
    database.done(&["workspaces", "create", "shop"]);
    database.done(&[
        "workflows",
        "create",
        "order",
        "--workspace",
        "shop",
        "--graph",
        graph,
    ]);
    let placed = place_order(&database, "17", "1200");
    let words = String::from_utf8_lossy(&placed.stderr);
    assert!(placed.status.success(), "{words}");
    let item = String::from_utf8(placed.stdout).unwrap();
    let shown = database.json(&["queue", "show", item.trim()]);
    assert_eq!(
        (&shown["input"]["order"], &shown["idempotency_key"]),
        (&17.into(), &"order-17".into())
    );

    let again = place_order(&database, "17", "1200");
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        item,
        "the key gives the first item"
    );
    let failed = place_order(&database, "18", "0");
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stderr).contains("orders_amount_check"));
    assert_eq!(
        database.json(&["queue", "list"]).as_array().unwrap().len(),
        1,
        "what was rolled back is not there"
    );
}
