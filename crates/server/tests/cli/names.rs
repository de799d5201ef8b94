//! Names, ids and beginnings of ids, through a server as on a database alone.

use serde_json::Value;

use crate::served::Served;
use crate::support::{Ended, GRAPH, TestDatabase, text, written};

/// A shop with a workflow, and one item that waits.
fn shop(database: &TestDatabase) -> String {
    let graph = written(GRAPH);
    let path = graph.path().to_str().unwrap();
    database.done(&["workspaces", "create", "Shop", "--plan", "PRO"]);
    database.done(&[
        "workflows",
        "create",
        "import",
        "--workspace",
        "shop",
        "--graph",
        path,
    ]);
    database.done(&["workspaces", "pause", "shop"]);
    text(
        &database.json(&["queue", "add", "--workspace", "shop", "--workflow", "import"]),
        "id",
    )
}

#[test]
fn names_and_beginnings_of_ids_are_taken_the_same_through_a_server_and_on_a_database() {
    let served = Served::start();
    let database = &served.database;
    let item = shop(database);
    database.done(&[
        "alarms",
        "set",
        "--workspace",
        "shop",
        "--name",
        "Nightly",
        "--cron",
        "30 2 * * *",
    ]);
    database.done(&["triggers", "set", "orders", "paid", "--workflow", "shop.import"]);
    for command in [
        &["workspaces", "show", "shop"][..],
        &["workflows", "show", "import"],
        &["workflows", "list", "--workspace", "SHOP"],
        &["queue", "list", "--workspace", "shop", "--workflow", "import"],
        &["queue", "show", &item[..30]],
        &["executions", "list", "--workspace", "shop"],
        &["alarms", "list", "--workspace", "shop"],
        &["alarms", "show", "nightly"],
        &["alarms", "show", "shop.nightly"],
        &["alarms", "occurrences", "nightly"],
        &["triggers", "list", "--workspace", "shop"],
        &["audit", "list", "--workspace", "shop", "--limit", "3"],
        &[
            "queue",
            "cancel-all",
            "--workspace",
            "shop",
            "--workflow",
            "import",
            "--dry-run",
        ],
        &["workspaces", "delete", "shop", "--dry-run"],
    ] {
        let (through, alone) = (served.json(command), database.json(command));
        assert_eq!(through, alone, "{command:?}");
        assert!(
            !alone.to_string().is_empty() && alone != Value::Array(Vec::new())
                || command[0] == "executions"
                || command[1] == "occurrences",
            "{command:?}"
        );
    }
    let listed = served.done(&["queue", "list"]);
    assert!(listed.contains("shop") && listed.contains("import"), "{listed}");
    assert!(listed.contains(&item), "a pipe gets whole ids: {listed}");
    let wide = served.done(&["queue", "list", "-o", "wide"]);
    assert!(wide.contains(&item), "{wide}");
    assert_eq!(
        database.json(&["queue", "list"]),
        serde_json::from_str::<Value>(&database.done(&["queue", "list", "-o", "json"])).unwrap()
    );

    // As much of an id as a terminal shows, which is what tells it from the others, is enough to name it.
    let second = text(
        &served.json(&["queue", "add", "--workspace", "shop", "--workflow", "shop.import"]),
        "id",
    );
    let listed = served.done(&["queue", "list"]);
    let shown: Vec<&str> = listed
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(shown.len(), 2, "{listed}");
    let same = item
        .bytes()
        .zip(second.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    let short = |id: &str| id[..(same + 1).max(13)].to_owned();
    for (short, whole) in shown.iter().map(|id| short(id)).zip([&second, &item]) {
        assert_eq!(
            &text(&served.json(&["queue", "show", &short]), "id"),
            whole,
            "{listed}"
        );
    }
    // The same beginning of both is not.
    for ended in [
        served.run_as(&served.token, &["queue", "show", &item[..4]]),
        database.run(&["queue", "show", &item[..4]]),
    ] {
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(
            ended.stderr.contains(&item) && ended.stderr.contains(&second),
            "{}",
            ended.stderr
        );
    }
    served.done(&["queue", "cancel", shown[0], "--yes"]);
    served.done(&["alarms", "pause", "nightly"]);
    assert_eq!(database.json(&["alarms", "show", "nightly"])["status"], "paused");
}

#[test]
fn an_unknown_name_is_an_error_that_tells_what_may_have_been_meant() {
    let served = Served::start();
    let database = &served.database;
    shop(database);
    let both =
        |command: &[&str]| -> [Ended; 2] { [served.run_as(&served.token, command), database.run(command)] };
    for (command, words) in [
        (
            &["queue", "list", "--workspace", "shpo"][..],
            "Did you mean shop?",
        ),
        (
            &["workflows", "list", "--workspace", "shpo"],
            "Did you mean shop?",
        ),
        (&["workspaces", "show", "sho"], "Did you mean shop?"),
        (
            &["queue", "list", "--workspace", "shop", "--workflow", "imprt"],
            "Did you mean import?",
        ),
        (&["workflows", "show", "shop.imprt"], "Did you mean shop.import?"),
        (
            &["workspaces", "pause", "warehouse"],
            "stationmaster workspaces list",
        ),
        (
            &[
                "queue",
                "list",
                "--workspace",
                "01890a5d-ac96-774b-bcce-b302099a8057",
            ],
            "stationmaster workspaces list",
        ),
        (&["queue", "show", "0000"], "stationmaster queue list"),
        (&["tokens", "revoke", "bos", "--yes"], "Did you mean boss?"),
    ] {
        for ended in both(command) {
            assert_eq!(ended.code, 3, "{command:?}: {}{}", ended.stdout, ended.stderr);
            assert_eq!(ended.stdout, "", "{command:?}");
            assert!(ended.stderr.contains(words), "{command:?}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_name_makes_no_second_thing() {
    let database = TestDatabase::migrated();
    shop(&database);
    for (command, words) in [
        (
            &["workspaces", "create", "SHOP"][..],
            "stationmaster workspaces set shop",
        ),
        (
            &["workflows", "create", "Import", "--workspace", "shop"],
            "stationmaster workflows set shop.import",
        ),
    ] {
        let refused = database.refused(4, command);
        assert!(refused.contains(words), "{command:?}: {refused}");
    }
    // What is advised works.
    database.done(&["workspaces", "set", "shop", "--limit", "3"]);
    database.done(&["workflows", "set", "shop.import", "--max-attempts", "2"]);
    assert_eq!(
        database.json(&["workspaces", "list"]).as_array().unwrap().len(),
        1
    );
    database.done(&[
        "alarms",
        "set",
        "--workspace",
        "shop",
        "--name",
        "nightly",
        "--cron",
        "30 2 * * *",
    ]);
    let again = [
        "alarms",
        "set",
        "--workspace",
        "shop",
        "--name",
        "Nightly",
        "--cron",
        "30 3 * * *",
    ];
    assert!(database.refused(4, &again).contains("nightly"));
    // One that has ended gives its name up to the next.
    database.done(&["alarms", "cancel", "nightly", "--yes"]);
    database.done(&again);
    assert_eq!(
        database.json(&["alarms", "show", "nightly"])["cron_expr"],
        "30 3 * * *"
    );
    let token = [
        "tokens",
        "create",
        "Night Shift",
        "--role",
        "viewer",
        "--workspace",
        "shop",
    ];
    assert_eq!(database.json(&token)["token"]["name"], "night-shift");
    assert!(database.refused(4, &token).contains("night-shift"));
    database.done(&["tokens", "revoke", "night-shift", "--yes"]);
    database.done(&token);
}
