//! Contexts: named servers, and tokens that are kept and never shown.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::served::Served;
use crate::support::{Ended, run};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, arguments: &[&str], more: &[(&str, &str)], input: &str) -> Ended {
        let folder = self.0.path().to_str().unwrap();
        let environment = [&[("XDG_CONFIG_HOME", folder)], more].concat();
        run(arguments, &environment, input)
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.run(&[arguments, &["--json"]].concat(), &[], "");
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap()
    }
}

#[test]
fn a_context_is_kept_used_and_forgotten_and_its_token_never_shown() {
    let (home, served) = (Home::new(), Served::start());
    let add = [
        "contexts",
        "add",
        "here",
        "--url",
        &served.url,
        "--token-file",
        "-",
    ];
    let added = home.run(&add, &[], &format!("{}\n", served.token));
    assert_eq!(added.code, 0, "{}", added.stderr);
    let other = home.run(
        &["contexts", "add", "there", "--url", "http://127.0.0.1:1"],
        &[("STATIONMASTER_TOKEN", "smt_of_there")],
        "",
    );
    assert_eq!(other.code, 0, "{}", other.stderr);

    let file = home.0.path().join("stationmaster/contexts.toml");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let listed = home.run(&["contexts", "list"], &[], "");
    for said in [&added, &other, &listed] {
        let words = format!("{}{}", said.stdout, said.stderr);
        assert!(!words.contains("smt_"), "{words}");
    }
    assert_eq!(
        home.json(&["contexts", "list"]),
        json!([{ "name": "here", "url": served.url, "token": true, "current": true },
               { "name": "there", "url": "http://127.0.0.1:1", "token": true, "current": false }])
    );

    assert_eq!(
        home.json(&["plans", "list"]).as_array().unwrap().len(),
        3,
        "through the first one"
    );
    assert_eq!(
        home.run(&["plans", "list", "--context", "there"], &[], "").code,
        5
    );
    assert_eq!(
        home.run(&["plans", "list"], &[("STATIONMASTER_CONTEXT", "there")], "")
            .code,
        5
    );
    for command in [
        &["plans", "list", "--context", "thre"][..],
        &["contexts", "use", "thre"],
    ] {
        let slip = home.run(command, &[], "");
        assert_eq!(slip.code, 3, "{}", slip.stderr);
        assert!(slip.stderr.contains("Did you mean there?"), "{}", slip.stderr);
    }
    let database = ("STATIONMASTER_DATABASE_URL", "postgres://127.0.0.1:1/x");
    assert_eq!(
        home.run(&["plans", "list"], &[database], "").code,
        5,
        "settings come before it"
    );
    home.json(&["contexts", "use", "there"]);
    assert_eq!(home.run(&["plans", "list"], &[], "").code, 5);
    assert_eq!(
        home.json(&["contexts", "remove", "there", "--yes"])["name"],
        "there"
    );
    let nowhere = home.run(&["plans", "list"], &[], "");
    assert_eq!(nowhere.code, 2, "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("contexts add"), "{}", nowhere.stderr);
    assert!(std::fs::read_to_string(file).unwrap().contains(&served.token));
}

#[test]
fn a_context_that_cannot_be_is_refused() {
    let home = Home::new();
    for (code, arguments) in [
        (2, &["contexts", "add", "a"][..]),
        (2, &["contexts", "add", "a", "--url", "nonsense"]),
        (2, &["contexts", "add", "a", "--url", "http://user:password@host"]),
        (2, &["contexts", "add", " ", "--url", "http://host"]),
        (3, &["contexts", "use", "a"]),
        (3, &["contexts", "remove", "a", "--yes"]),
        (3, &["queue", "list", "--context", "a"]),
    ] {
        let ended = home.run(arguments, &[], "");
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("password@"), "{}", ended.stderr);
    }
    assert_eq!(home.json(&["contexts", "list"]), json!([]));
}

#[test]
fn what_comes_before_a_context_is_named_and_a_token_that_is_forgotten_is_told() {
    let home = Home::new();
    let add = |url: &str, token: &str| {
        let token: &[(&str, &str)] = if token.is_empty() {
            &[]
        } else {
            &[("STATIONMASTER_TOKEN", token)]
        };
        let added = home.run(&["contexts", "add", "here", "--url", url], token, "");
        assert_eq!(added.code, 0, "{}", added.stderr);
        added.stdout
    };
    add("http://127.0.0.1:1", "smt_one");
    let same = add("http://127.0.0.1:1", "");
    assert!(same.contains("with its token; it is the one in use"), "{same}");
    let other = add("http://127.0.0.1:2", "");
    assert!(
        other.contains("without a token, in place of http://127.0.0.1:1, whose token is forgotten"),
        "{other}"
    );
    let used = |more: &[(&str, &str)]| home.run(&["contexts", "use", "here"], more, "").stdout;
    assert!(used(&[]).contains("from now on"));
    for (name, value, told) in [
        (
            "STATIONMASTER_URL",
            "http://127.0.0.1:3",
            "STATIONMASTER_URL is set and comes first",
        ),
        ("STATIONMASTER_CONTEXT", "here", "STATIONMASTER_CONTEXT is set"),
        (
            "STATIONMASTER_DATABASE_URL",
            "postgres://x@127.0.0.1:3/x",
            "database_url is set",
        ),
    ] {
        let said = used(&[(name, value)]);
        assert!(said.contains(told) && !said.contains("from now on"), "{said}");
    }
}
