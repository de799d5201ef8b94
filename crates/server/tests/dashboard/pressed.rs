//! Every action is pressed by somebody: a test that calls `act` with its name has found its form in the browser and pressed its button.

use std::path::Path;

/// The names in the list of the dashboard itself.
fn actions() -> Vec<&'static str> {
    let source = include_str!("../../src/dashboard/actions/mod.rs");
    let (_, list) = source.split_once("const ACTIONS").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let names = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\"")?.split_once('"'));
    names.map(|(name, _)| name).collect()
}

/// What the tests say, without anything that a formatter may change.
fn tests() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard");
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    texts.collect::<String>().split_whitespace().collect::<String>()
}

#[test]
fn every_action_of_the_dashboard_is_pressed_by_some_test() {
    let (actions, tests) = (actions(), tests());
    assert!(actions.len() > 40, "{actions:?}");
    let pressed = |name: &str| tests.contains(&format!(".act(\"{name}\","));
    let missing: Vec<&str> = actions.into_iter().filter(|name| !pressed(name)).collect();
    assert!(
        missing.is_empty(),
        "nobody presses {missing:?}: add a test that calls Tab::act with the name"
    );
}
