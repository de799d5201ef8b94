//! A server that has done something of everything, seen through its metrics.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::receiver::Reply;
use crate::support::{Alarms, ENDLESS, Launch, PATIENCE, Process, SHORT, TestDatabase, eventually};

/// A node that only Temporal could run: the embedded engine refuses to start it.
const UNKNOWN: &str = r#"{"nodes": [{"id": "a", "type": "unheard_of"}]}"#;
const FAILING: &str = r#"{"nodes": [{"id": "a", "type": "fail", "message": "as asked"}]}"#;

/// The values of metrics, by name and labels as they are printed.
pub(crate) type Values = BTreeMap<String, f64>;

pub(crate) struct Scene {
    pub(crate) server: Process,
    pub(crate) alarms: Alarms,
    pub(crate) address: String,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let alarms = Alarms::new().await;
        let launch = alarms
            .launch()
            .with("HTTP__OPEN", "true")
            .with("LOG__LEVEL", "info,stationmaster_core=debug")
            .with("EXECUTIONS__RETRY_BASE", "10ms")
            .with("EXECUTIONS__RETRY_CAP", "20ms")
            .with("DISPATCHERS__SCAN_INTERVAL", "1s");
        Self::on(alarms, &launch).await
    }

    /// A server that claims nothing, fires nothing and owns nothing.
    pub(crate) async fn idle() -> Self {
        let alarms = Alarms::new().await;
        let launch = alarms
            .launch()
            .with("EXECUTIONS__ENABLED", "false")
            .with("ALARMS__ENABLED", "false")
            .with("DISPATCHERS__ENABLED", "false");
        Self::on(alarms, &launch).await
    }

    pub(crate) async fn on(alarms: Alarms, launch: &Launch) -> Self {
        let server = launch.start_ready().await;
        let address = server.address().unwrap();
        Self {
            server,
            alarms,
            address,
        }
    }

    pub(crate) fn database(&self) -> &TestDatabase {
        &self.alarms.database
    }

    /// The metrics as Prometheus' text.
    pub(crate) async fn text(&self) -> String {
        let (_, _, text) = request(&self.address, "GET", "/metrics", "", &[]).await;
        text
    }

    pub(crate) async fn values(&self) -> Values {
        values(&self.text().await)
    }

    /// Waits until the metrics are as they should be.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl FnMut(&Values) -> bool) {
        eventually(what, async || is_so(&self.values().await)).await;
    }

    /// Waits until these metrics have these values; says which do not.
    pub(crate) async fn reads(&self, wanted: &[(&str, f64)]) {
        let begun = Instant::now();
        loop {
            let values = self.values().await;
            let told = |name| values.get(name).copied().unwrap_or(f64::INFINITY);
            let off: Vec<_> = wanted
                .iter()
                .filter(|(name, many)| (told(*name) - many).abs() >= 0.5)
                .map(|(name, many)| format!("{name} is {}, not {many}", told(*name)))
                .collect();
            if off.is_empty() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", off.join("\n"));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// A workflow of a kind that is refused when it is made, so that nobody has it but by way of an engine that was left behind.
    async fn unknown(&self) -> (uuid::Uuid, uuid::Uuid) {
        let workflow = self.database().workflow(20, SHORT).await;
        let swap = format!(
            "alter table stationmaster.workflow_definition_versions disable trigger versions_are_immutable;
             update stationmaster.workflow_definition_versions set workflow = '{UNKNOWN}' where workflow_definition_id = '{}';
             alter table stationmaster.workflow_definition_versions enable trigger versions_are_immutable",
            workflow.1
        );
        let swap = sqlx::raw_sql(sqlx::AssertSqlSafe(swap));
        swap.execute(&self.database().pool).await.unwrap();
        workflow
    }

    /// Executions that end well and badly, that are refused, whose workflow is gone, and that find their workspace full.
    pub(crate) async fn run_executions(&self) {
        let database = self.database();
        let full = database.workflow(2, ENDLESS).await;
        database.enqueue(full, 5).await;
        for (graph, items) in [(SHORT, 7), (FAILING, 3)] {
            let workflow = database.workflow(20, graph).await;
            database.enqueue(workflow, items).await;
        }
        database.enqueue(self.unknown().await, 2).await;
        let gone = database.workflow(1, ENDLESS).await;
        database.enqueue(gone, 2).await;
        let running = "select count(*) from stationmaster.workflow_executions where workspace_id = $1 and status = 'RUNNING'";
        eventually("the first of the two runs", async || {
            let query = sqlx::query_scalar::<_, i64>(running).bind(gone.0);
            query.fetch_one(&database.pool).await.unwrap() == 1
        })
        .await;
        // One of the two runs and fills its workspace; the other one has lost its workflow when its turn comes.
        self.alarms
            .run(&format!(
                "delete from stationmaster.workflow_definitions where id = '{}'",
                gone.1
            ))
            .await;
        self.alarms
            .run(&format!(
                "update stationmaster.workspaces set max_concurrent = 5 where id = '{}'",
                gone.0
            ))
            .await;
    }

    /// Alarms that are accepted, refused, tried again, and skipped.
    pub(crate) async fn fire_alarms(&self) {
        let receiver = &self.alarms.receiver;
        receiver.always("/refuses", Reply::status(400));
        receiver.always("/breaks", Reply::status(500));
        for path in ["/accepts", "/refuses", "/breaks"] {
            self.alarms.now(path).await;
        }
        self.alarms.until_arrived(3).await;
    }

    /// Signals that are routed and that nobody knows.
    pub(crate) async fn send_signals(&self) {
        let (_, definition) = self.database().workflow(1_000, SHORT).await;
        self.alarms
            .run(&format!(
                "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('shop', 'paid', '{definition}')"
            ))
            .await;
        self.alarms
            .run("insert into stationmaster.signals (project, name) values ('shop', 'paid'), ('shop', 'paid'), ('shop', 'unheard-of')")
            .await;
    }

    /// Lets the server do something to everything that waits.
    pub(crate) async fn operate(&self) {
        let wish = json!({ "all": true, "priority": 3 }).to_string();
        let later = [("prefer", "respond-async")];
        let (status, _, body) = request(&self.address, "POST", "/v1/queue/priority", &wish, &later).await;
        assert_eq!(status, 202, "{body}");
    }

    /// A lock that is acquired, asked for again, and given back.
    pub(crate) async fn use_locks(&self) {
        let wish = json!({ "at_most": 60.0 }).to_string();
        let (status, _, held) = request(&self.address, "POST", "/v1/locks/nightly", &wish, &[]).await;
        assert_eq!(status, 201, "{held}");
        let (status, _, body) = request(&self.address, "POST", "/v1/locks/nightly", &wish, &[]).await;
        assert_eq!(status, 409, "{body}");
        let token = serde_json::from_str::<Value>(&held).unwrap()["token"].clone();
        let path = format!("/v1/locks/nightly?token={token}");
        let (status, _, body) = request(&self.address, "DELETE", &path, "", &[]).await;
        assert!(status < 300, "{status} {body}");
    }
}

/// Reads Prometheus' text.
pub(crate) fn values(text: &str) -> Values {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// The sum over all labels.
pub(crate) fn sum(values: &Values, name: &str) -> f64 {
    let of_it = values.iter().filter(|(sample, _)| {
        sample
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
    });
    of_it.map(|(_, value)| value).sum()
}

/// One request without a library: the status, the head, and the body.
pub(crate) async fn request(
    address: &str,
    method: &str,
    path: &str,
    body: &str,
    headers: &[(&str, &str)],
) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let headers: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let headers = headers.concat();
    // By the older version nobody answers in chunks.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

/// A file of the repository.
pub(crate) fn repository_file(path: &str) -> String {
    let path = repository_path(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn repository_path(path: &str) -> String {
    format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a program with something on its standard input; whether it succeeded, and what it said.
pub(crate) fn fed(program: &str, arguments: &[&str], input: &str) -> (bool, String) {
    use std::io::Write as _;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}
