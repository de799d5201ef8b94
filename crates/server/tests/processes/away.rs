//! What people are told when the database of a server is away: soon, in the server's own words, and with an exit code that scripts can go by; the
//! same cause through a server as on the database itself.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::postgres::cluster;
use crate::silence::proxy_before;
use crate::support::{Launch, Process, TestDatabase, command, eventually};

/// Nobody waits longer at a terminal, on a machine that has other things to do as well.
const SOON: Duration = Duration::from_secs(15);

/// The database or the server is not available.
const UNAVAILABLE: i32 = 5;

/// Where a command works.
struct Place {
    environment: Vec<(&'static str, String)>,
}

impl Place {
    fn server(server: &Process, token: &str) -> Self {
        let address = server.address().unwrap();
        let url = format!("http://{}", address.trim_start_matches("http://"));
        Self {
            environment: vec![
                ("STATIONMASTER_URL", url),
                ("STATIONMASTER_TOKEN", token.to_owned()),
            ],
        }
    }

    fn database(url: &str) -> Self {
        Self {
            environment: vec![("STATIONMASTER_DATABASE_URL", url.to_owned())],
        }
    }

    /// Runs a command, which must be over soon.
    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stationmaster"));
        command.args(arguments).env_clear().envs(self.environment.clone());
        let began = Instant::now();
        let output = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = output.await.unwrap();
        println!("{arguments:?} took {:?}", began.elapsed());
        assert!(began.elapsed() < SOON, "{arguments:?}: {:?}", began.elapsed());
        output
    }

    /// A list is refused, with the code of what is away; its words.
    async fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(UNAVAILABLE), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        said
    }

    /// What the doctor finds, which is a problem; each finding with what it saw.
    async fn examined(&self) -> Vec<(String, String, String)> {
        let output = self.run(&["doctor", "--json"]).await;
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{report:#}");
        let findings = report["findings"].as_array().unwrap().iter();
        let word = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
        findings
            .map(|one| (word(one, "id"), word(one, "severity"), word(one, "seen")))
            .collect()
    }
}

fn token(database: &TestDatabase) -> String {
    let made = command(database, &["tokens", "create", "boss", "--role", "admin"]);
    made["secret"].as_str().unwrap().to_owned()
}

#[track_caller]
fn assert_told(findings: &[(String, String, String)], id: &str, words: &str) {
    let told = findings
        .iter()
        .any(|(known, severity, seen)| known == id && severity == "problem" && seen.contains(words));
    assert!(told, "no problem {id} with {words:?} in {findings:#?}");
}

/// Through the server and on the database: both are refused soon, and both tell the cause; `words` are the server's own, once it knows.
async fn tells_the_cause(server: &Process, token: &str, database_url: &str, words: &str, cause: &str) {
    eventually("it knows why it is not ready", async || {
        let (status, said) = server.readiness().await;
        status == 503 && said.contains(words)
    })
    .await;
    let (through, on) = (Place::server(server, token), Place::database(database_url));
    for arguments in [&["queue", "list"], &["failures", "list"]] {
        let said = through.refused(arguments).await;
        assert!(said.contains("is not ready: ") && said.contains(words), "{said}");
        let said = on.refused(arguments).await;
        assert!(said.contains(cause), "{said}");
    }
    let seen = through.examined().await;
    assert_told(&seen, "server.ready", words);
    assert_told(&seen, "database.reachable", "");
    assert_told(&on.examined().await, "database.reachable", "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_and_lists_tell_soon_that_the_database_of_a_server_was_stopped() {
    let (cluster, database) = cluster().await;
    let token = token(&database);
    let server = Launch::on(&database).start_ready().await;
    let place = Place::server(&server, &token);
    assert!(place.run(&["queue", "list"]).await.status.success());
    cluster.halt().await;
    let cause = "could not be reached: Connection refused";
    tells_the_cause(&server, &token, &database.url, "Connection refused", cause).await;
    // It comes back, and so does everything else.
    cluster.resume().await;
    eventually("lists are shown again", async || {
        place.run(&["queue", "list"]).await.status.success()
    })
    .await;
    database.pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_and_lists_tell_soon_that_the_database_of_a_server_has_gone_silent() {
    let database = TestDatabase::new().await;
    let token = token(&database);
    let (proxy, launch) = proxy_before(&database).await;
    let server = launch.start_ready().await;
    let place = Place::server(&server, &token);
    assert!(place.run(&["queue", "list"]).await.status.success());
    proxy.vanish();
    let mut url: url::Url = database.url.parse().unwrap();
    let (_, port) = proxy.address.split_once(':').unwrap();
    url.set_port(Some(port.parse().unwrap())).unwrap();
    tells_the_cause(
        &server,
        &token,
        url.as_str(),
        "gone silent",
        "did not answer within",
    )
    .await;
}
