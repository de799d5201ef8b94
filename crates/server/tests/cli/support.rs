//! A database of its own for each test, and the binary to run on it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use sqlx::{Connection as _, PgConnection};
use tempfile::NamedTempFile;
use url::Url;
use uuid::Uuid;

/// A graph with an order that is not the order in which it is written.
pub(crate) const GRAPH: &str = r#"{"nodes": [{"id": "load", "type": "noop"}, {"id": "extract", "type": "noop"}],
    "edges": [{"from": "extract", "to": "load"}]}"#;

/// A database that is gone when the test is over.
pub(crate) struct TestDatabase {
    admin: Url,
    name: String,
}

impl TestDatabase {
    /// An empty database.
    pub(crate) fn empty() -> Self {
        let admin = std::env::var("STATIONMASTER_TEST_DATABASE_URL")
            .expect("these tests need a PostgreSQL: run them with `cargo xtask test`");
        let admin: Url = admin.parse().expect("STATIONMASTER_TEST_DATABASE_URL is a URL");
        let name = format!("cli_{}", Uuid::now_v7().simple());
        let database = Self { admin, name };
        database
            .administer(format!("create database {}", database.name))
            .expect("a database can be made");
        database
    }

    /// A database with our tables.
    pub(crate) fn migrated() -> Self {
        let database = Self::empty();
        database.done(&["migrate"]);
        database
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(&self.name)
    }

    /// The address of another database of the same server.
    pub(crate) fn url_of(&self, name: &str) -> String {
        let mut url = self.admin.clone();
        url.set_path(name);
        url.into()
    }

    /// Does this in the database.
    #[track_caller]
    pub(crate) fn execute(&self, statement: &str) {
        execute_on(&self.url(), statement.to_owned()).expect("it can be done");
    }

    /// Takes the database away from whoever uses it.
    pub(crate) fn vanish(&self) {
        self.administer(format!("drop database {} with (force)", self.name))
            .expect("it can be dropped");
    }

    fn administer(&self, statement: String) -> Result<(), sqlx::Error> {
        execute_on(self.admin.as_str(), statement)
    }

    /// Runs a command on this database.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with_input(arguments, "")
    }

    /// The same with something on the standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        run(arguments, &[("STATIONMASTER_DATABASE_URL", &self.url())], input)
    }

    /// Runs a command that must succeed; its words.
    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// Runs a command that must succeed; its JSON.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.done(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// Runs a command that must be refused with this code; what it said.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(
            ended.code, code,
            "{arguments:?}: {}{}",
            ended.stdout, ended.stderr
        );
        assert_eq!(ended.stdout, "", "{arguments:?} is refused, so it has no result");
        ended.stderr
    }

    /// A workspace and a workflow of it that can run.
    pub(crate) fn workflow(&self, graph: &str) -> (String, String) {
        // The first one is called north, and every other one so that it is another.
        let made = self.run(&["workspaces", "create", "north", "--json"]);
        let made = match made.code {
            0 => serde_json::from_str(&made.stdout).expect("JSON"),
            _ => self.json(&[
                "workspaces",
                "create",
                &format!("north-{}", Uuid::now_v7().simple()),
            ]),
        };
        let workspace = text(&made, "id");
        let file = written(graph);
        let path = file.path().to_str().expect("a path in UTF-8");
        let workflow = self.json(&[
            "workflows",
            "create",
            "nightly",
            "--workspace",
            &workspace,
            "--graph",
            path,
        ]);
        (workspace, text(&workflow, "id"))
    }

    /// Enqueues one item.
    pub(crate) fn enqueue(&self, workspace: &str, workflow: &str) -> String {
        text(
            &self.json(&["queue", "add", "--workspace", workspace, "--workflow", workflow]),
            "id",
        )
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let dropped = self.administer(format!("drop database if exists {} with (force)", self.name));
        // A test that has failed has more to tell than that its database stays behind.
        assert!(dropped.is_ok() || std::thread::panicking(), "{dropped:?}");
    }
}

fn execute_on(url: &str, statement: String) -> Result<(), sqlx::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connection = PgConnection::connect(url).await?;
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&mut connection)
            .await?;
        connection.close().await
    })
}

/// How a run of the binary ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary with nothing in its environment but this.
pub(crate) fn run(arguments: &[&str], environment: &[(&str, &str)], input: &str) -> Ended {
    let mut child = binary(arguments, environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that does not read has gone before everything is written.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let ended = Ended {
        code: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    };
    assert!(
        !ended.stderr.contains("panicked"),
        "{arguments:?}: {}",
        ended.stderr
    );
    ended
}

pub(crate) fn binary(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stationmaster"));
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied());
    command
}

/// A file with this text.
pub(crate) fn written(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}

/// A field that holds a string.
#[track_caller]
pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("no string {field} in {value}"))
        .to_owned()
}
