//! A file says what there is to be.

use serde_json::Value;

use crate::served::Served;
use crate::support::{GRAPH, TestDatabase, written};

const GUIDE: &str = include_str!("../../../../docs/guides/apply.md");

/// A block of the guide.
fn block(language: &str) -> &'static str {
    let after = GUIDE
        .split(&format!("```{language}\n"))
        .nth(1)
        .expect("the guide has one");
    after.split("```").next().unwrap_or_default()
}

fn lines(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.starts_with(['+', '~', '-']))
        .collect()
}

#[test]
fn the_example_of_the_guide_is_applied_once_and_then_nothing_differs() {
    let served = Served::start();
    let file = written(block("toml"));
    let path = file.path().to_str().unwrap();
    let shown = served.done(&["apply", "-f", path, "--dry-run"]);
    assert_eq!(
        lines(&shown),
        block("text").lines().collect::<Vec<_>>(),
        "what the guide shows"
    );
    assert_eq!(
        served.json(&["workspaces", "list"]),
        Value::Array(Vec::new()),
        "a dry run changes nothing"
    );
    // Nobody can be asked here.
    let ended = served.run_as(&served.token, &["apply", "-f", path]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);

    assert!(
        served
            .done(&["apply", "-f", path, "--yes"])
            .contains("Made 6 changes.")
    );
    for again in [
        served.done(&["apply", "-f", path, "--yes"]),
        served.database.done(&["apply", "-f", path]),
    ] {
        assert!(again.contains("Nothing differs"), "{again}");
    }
    let workflow = served.json(&["workflows", "show", "shop.import"]);
    assert_eq!(
        (&workflow["max_attempts"], &workflow["current_version"]),
        (&3.into(), &1.into())
    );
    assert_eq!(
        served.json(&["alarms", "show", "shop.nightly"])["cron_expr"],
        "30 2 * * *"
    );
    assert_eq!(served.json(&["triggers", "list"])[0]["workflow"], "import");
    assert_eq!(served.json(&["workspaces", "show", "shop"])["limit"], 10);
}

#[test]
fn only_what_the_file_says_is_changed_and_what_it_leaves_out_stays() {
    let database = TestDatabase::migrated();
    let first = written(block("toml"));
    database.done(&["apply", "-f", first.path().to_str().unwrap(), "--yes"]);
    database.done(&["workspaces", "set", "shop", "--limit", "4"]);
    database.done(&["workflows", "pause", "import"]);
    let second = block("toml")
        .replace("max_concurrent = 10", "max_concurrent = 12")
        .replace("max_attempts = 3", "max_attempts = 5")
        .replace(
            "id = \"fetch\", type = \"noop\"",
            "id = \"fetch\", type = \"wait\", seconds = 1",
        )
        .replace("30 2 * * *", "30 3 * * *")
        .replace("workflow = \"import\"", "workflow = \"import\"\npriority = 7");
    let second = written(&second);
    let path = second.path().to_str().unwrap();
    let shown = database.done(&["apply", "-f", path, "--dry-run"]);
    assert_eq!(
        lines(&shown),
        [
            "~ plan BULK: max_concurrent 10 -> 12",
            "~ workflow shop.import: max_attempts 3 -> 5",
            "~ version of workflow shop.import: graph",
            "~ trigger orders/paid: priority 0 -> 7",
            "~ alarm shop.nightly: cron_expr 30 2 * * * -> 30 3 * * *",
        ]
    );
    let applied = database.json(&["apply", "-f", path, "--yes"]);
    assert_eq!(
        (applied["changes"].as_array().map(Vec::len), &applied["applied"]),
        (Some(5), &true.into())
    );
    assert!(
        database
            .done(&["apply", "-f", path, "--yes"])
            .contains("Nothing differs")
    );
    let workspace = database.json(&["workspaces", "show", "shop"]);
    assert_eq!(workspace["max_concurrent"], 4, "the file does not speak of it");
    let workflow = database.json(&["workflows", "show", "import"]);
    assert_eq!(
        (&workflow["paused"], &workflow["current_version"]),
        (&true.into(), &2.into())
    );
    let alarm = database.json(&["alarms", "show", "nightly"]);
    assert_eq!(
        (&alarm["cron_expr"], &alarm["timezone"]),
        (&"30 3 * * *".into(), &"Europe/Zurich".into())
    );
    assert_eq!(
        database.json(&["alarms", "list"]).as_array().map(Vec::len),
        Some(1),
        "it is the same alarm"
    );
}

#[test]
fn what_is_not_in_the_file_stays_unless_it_is_pruned() {
    let database = TestDatabase::migrated();
    let whole = written(block("toml"));
    database.done(&["apply", "-f", whole.path().to_str().unwrap(), "--yes"]);
    database.done(&["alarms", "set", "--workspace", "shop", "--cron", "@daily"]);
    let less = written("[workspaces.shop]\n[workspaces.other]\n");
    let path = less.path().to_str().unwrap();
    let shown = database.done(&["apply", "-f", path, "--dry-run"]);
    assert_eq!(lines(&shown), ["+ workspace other"]);
    assert!(
        shown.contains("stays (--prune removes it): workflow shop.import, trigger orders/paid"),
        "{shown}"
    );
    let shown = database.done(&["apply", "-f", path, "--prune", "--dry-run"]);
    let removed = [
        "+ workspace other",
        "- trigger orders/paid",
        "- alarm shop.nightly",
        "- workflow shop.import",
    ];
    assert_eq!(lines(&shown), removed);
    // Without a yes nothing goes.
    assert_eq!(database.run(&["apply", "-f", path, "--prune"]).code, 2);
    assert_eq!(
        database.json(&["workflows", "list"]).as_array().map(Vec::len),
        Some(1)
    );
    let before = database
        .json(&["alarms", "list", "--status", "active"])
        .as_array()
        .map(Vec::len);
    database.done(&["apply", "-f", path, "--prune", "--yes"]);
    assert_eq!(database.json(&["workflows", "list"]), Value::Array(Vec::new()));
    assert_eq!(database.json(&["triggers", "list"]), Value::Array(Vec::new()));
    let after = database
        .json(&["alarms", "list", "--status", "active"])
        .as_array()
        .map(Vec::len);
    assert_eq!(
        (before, after),
        (Some(2), Some(1)),
        "one without a name is nobody's to prune"
    );
}

#[test]
fn what_goes_wrong_is_told_with_its_place_and_how_far_it_came() {
    let database = TestDatabase::migrated();
    let wrong = written("[workspaces.shop]\nplam = 'PRO'\n");
    let refused = database.refused(2, &["apply", "-f", wrong.path().to_str().unwrap(), "--yes"]);
    assert!(
        refused.contains("workspaces.shop: there is no field plam"),
        "{refused}"
    );
    // The project is another workspace's, which only the change itself finds out.
    database.done(&["workspaces", "create", "alpha"]);
    let graph = written(GRAPH);
    let graph = graph.path().to_str().unwrap();
    database.done(&[
        "workflows",
        "create",
        "w",
        "--workspace",
        "alpha",
        "--graph",
        graph,
    ]);
    database.done(&["triggers", "set", "orders", "paid", "--workflow", "alpha.w"]);
    let wrong = written(
        "[workspaces.beta.workflows.w]\ngraph = { nodes = [{ id = 'a', type = 'noop' }] }\n\
         [[workspaces.beta.triggers]]\nproject = 'orders'\nsignal = 'sent'\nworkflow = 'w'\n",
    );
    let path = wrong.path().to_str().unwrap();
    let ended = database.run(&["apply", "-f", path, "--yes"]);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("3 of 4 changes were made before"),
        "{}",
        ended.stderr
    );
    database.done(&["workflows", "show", "beta.w"]);
}

#[test]
fn a_dry_run_tells_everything_that_applying_would_refuse() {
    let served = Served::start();
    let wrong = written(
        r#"
        [plans.BULK]
        max_concurrent = -1
        [workspaces.shop]
        plan = "GOLD"
        [workspaces.shop.workflows.import]
        max_attempts = 0
        graph = { nodes = [{ id = "ask", type = "htp" }, { id = "rest", type = "wait", seconds = "long" }] }
        [[workspaces.shop.triggers]]
        project = "orders"
        signal = "paid"
        workflow = "export"
        [workspaces.shop.alarms.nightly]
        cron_expr = "61 2 * * *"
        timezone = "Europe/Zurch"
        max_failures = "many"
        [workspaces.shop.alarms.weekly]
        cron_expr = "61 2 * * *"
        timezone = "Europe/Zurch"
        "#,
    );
    let path = wrong.path().to_str().unwrap();
    for way in ["--dry-run", "--yes"] {
        let ended = served.run_as(&served.token, &["apply", "-f", path, way]);
        assert_eq!(ended.code, 2, "{way}: {}", ended.stderr);
        for words in [
            "plan BULK: max_concurrent: 0 or more",
            "workspace shop: there is no plan GOLD",
            "workflow shop.import: max_attempts: 1 or more",
            "version of workflow shop.import: nodes.0.type",
            "did you mean \"http\"?",
            "nodes.1.seconds",
            "trigger orders/paid: there is no workflow shop.export",
            "alarm shop.nightly: max_failures: a whole number, 0 or more is expected",
            "alarm shop.weekly: the minute goes from 0 to 59, not 61",
            "Europe/Zurch",
        ] {
            assert!(ended.stderr.contains(words), "{way}: {words}: {}", ended.stderr);
        }
    }
    assert_eq!(
        served.json(&["workspaces", "list"]),
        Value::Array(Vec::new()),
        "nothing was made"
    );
}

#[test]
fn an_alarm_whose_only_instant_has_passed_is_over_and_not_made_again() {
    let database = TestDatabase::migrated();
    let file = written(
        "[workspaces.shop.alarms.launch]\nfire_at = 2020-01-01T09:00:00Z\n\
         [workspaces.shop.alarms.party]\ncivil_at = 2020-01-01T09:00:00\ntimezone = 'Europe/Zurich'\n\
         [workspaces.shop.alarms.later]\nfire_at = 2099-01-01T09:00:00Z\n",
    );
    let path = file.path().to_str().unwrap();
    let shown = database.done(&["apply", "-f", path, "--dry-run"]);
    assert_eq!(
        lines(&shown),
        [
            "+ workspace shop",
            "+ alarm shop.later: fire_at 2099-01-01T09:00:00Z"
        ]
    );
    let over = "Over, and not made: alarm shop.launch (2020-01-01T09:00:00Z), alarm shop.party (2020-01-01T08:00:00Z)";
    assert!(shown.contains(over), "{shown}");
    database.done(&["apply", "-f", path, "--yes"]);
    let again = database.json(&["apply", "-f", path, "--yes"]);
    assert_eq!(
        (
            again["changes"].as_array().map(Vec::len),
            again["over"].as_array().map(Vec::len)
        ),
        (Some(0), Some(2)),
        "{again}"
    );
    let alarms = database.json(&["alarms", "list"]);
    assert_eq!(alarms.as_array().map(Vec::len), Some(1), "{alarms}");
}

#[test]
fn a_plan_is_the_same_in_whatever_case_it_is_written() {
    let database = TestDatabase::migrated();
    let before = database.json(&["plans", "list"]);
    let set = database.json(&["plans", "set", "pro", "--limit", "7"]);
    assert_eq!(
        (&set["name"], &set["weight"]),
        (&"PRO".into(), &2.0.into()),
        "{set}"
    );
    let workspace = database.json(&["workspaces", "create", "shop", "--plan", "Pro"]);
    assert_eq!(
        (&workspace["plan"], &workspace["limit"]),
        (&"PRO".into(), &7.into())
    );
    let file = written("[plans.pro]\nmax_concurrent = 7\n[workspaces.shop]\nplan = 'pro'\n");
    let again = database.done(&["apply", "-f", file.path().to_str().unwrap(), "--yes"]);
    assert!(again.contains("Nothing differs"), "{again}");
    let after = database.json(&["plans", "list"]);
    assert_eq!(
        before.as_array().map(Vec::len),
        after.as_array().map(Vec::len),
        "{after}"
    );
    let twice = written("[plans.pro]\nmax_concurrent = 7\n[plans.PRO]\nmax_concurrent = 8\n");
    let refused = database.refused(2, &["apply", "-f", twice.path().to_str().unwrap(), "--yes"]);
    assert!(refused.contains("two of the name"), "{refused}");
}
