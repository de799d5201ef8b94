//! Floods of requests, with a token and with none that opens the door: they cost no lease and leave the work its pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stationmaster_core::access::{self, NewToken, Role};
use stationmaster_core::db::Database;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::silence::asked_all_the_time;
use crate::support::{Launch, Process, SHORT, TestDatabase, eventually};

/// What is left of the pace under a flood, at least.
const PACE: f64 = 0.8;
/// How long a pace is measured.
const MEASURED: Duration = Duration::from_secs(6);
/// Connections that the server takes.
const CONNECTIONS: usize = 300;

/// Old work in the tables, more than anybody should read at once. No trigger sees it.
const OLD_WORK: &[&str] = &[
    "set session_replication_role = replica",
    "insert into stationmaster_internal.signals_inbox (id, project, name, payload)
     select 'old-' || n, 'shop', 'order', '{\"of\": \"long ago\"}' from generate_series(1, 300000) n",
    "insert into stationmaster_internal.signals_settled (signal_id, dispatcher_id, status, epoch, settled_by, settled_at, replays)
     select 'old-' || n, 'dispatcher-shop-default', 'ROUTED', 1, 'a test', now() - interval '1 hour', 0 from generate_series(1, 300000) n",
    "insert into stationmaster.audit (actor, action, subject, detail)
     select 'somebody', 'workspace.put', 'old-' || n, '{}' from generate_series(1, 100000) n",
    "set session_replication_role = origin",
    "analyze",
];

struct Stage {
    database: TestDatabase,
    server: Process,
    address: String,
    viewer: String,
    admin: String,
    base: f64,
}

impl Stage {
    /// A server that has work for as long as the test takes, and much behind it.
    async fn set() -> Self {
        let database = TestDatabase::new().await;
        let mut connection = database.pool.acquire().await.unwrap();
        for statement in OLD_WORK {
            sqlx::query(*statement).execute(&mut *connection).await.unwrap();
        }
        drop(connection);
        let workflow = database.workflow(10, SHORT).await;
        let core = Database::new(&database.url, 2).unwrap();
        let token = async |role: Role| {
            let new = NewToken {
                name: role.as_str().to_owned(),
                role,
                workspaces: None,
                expires_at: None,
            };
            let (_, secret) = access::create(&core, &new, "a test").await.unwrap();
            secret.expose().to_owned()
        };
        let (viewer, admin) = (token(Role::Viewer).await, token(Role::Admin).await);
        let launch = Launch::on(&database).with("HTTP__MAX_CONNECTIONS", &CONNECTIONS.to_string());
        let server = launch.start_ready().await;
        database.enqueue(workflow, 30_000).await;
        database.until_count("COMPLETED", 100).await;
        let mut stage = Self {
            address: server.address().unwrap(),
            database,
            server,
            viewer,
            admin,
            base: 0.0,
        };
        stage.base = stage.pace().await;
        println!("base: {:.0} executions a second", stage.base);
        stage
    }

    /// Executions a second, for a while.
    async fn pace(&self) -> f64 {
        let completed = "select count(*) from stationmaster_internal.executions_finished";
        let (before, began) = (self.database.number(completed).await, Instant::now());
        tokio::time::sleep(MEASURED).await;
        let done = self.database.number(completed).await - before;
        f64::from(i32::try_from(done).unwrap()) / began.elapsed().as_secs_f64()
    }

    /// Under these clients the work keeps its pace, no lease is lost, and whoever asks whether the server lives is answered.
    async fn stands(&self, flood: &str, clients: JoinSet<()>, asked: &AtomicU64) {
        let mut pace = 0.0;
        let measured = async {
            // The flood must stand before it is measured.
            tokio::time::sleep(Duration::from_secs(1)).await;
            pace = self.pace().await;
        };
        let answers = asked_all_the_time(&self.server, measured).await;
        drop(clients);
        let kept = pace / self.base;
        let asked = asked.swap(0, Ordering::Relaxed);
        println!("{flood}: {pace:.0} executions a second, {kept:.2} of base; {asked} requests were answered");
        assert!(
            answers.iter().all(|(_, status)| *status == 200),
            "{flood}: {answers:?}"
        );
        assert!(kept >= PACE, "{flood}: {pace:.0} of {:.0} a second", self.base);
        assert_eq!(
            self.server.said("lease had run out"),
            0,
            "{flood}: {}",
            self.server.log()
        );
    }
}

/// Asks these again and again over one connection, and begins anew when it is closed. A refusal makes it wait for a moment.
async fn ask_again_and_again(address: String, token: String, paths: Vec<String>, asked: Arc<AtomicU64>) {
    loop {
        let Ok(mut stream) = TcpStream::connect(&address).await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        for path in paths.iter().cycle() {
            let request =
                format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n");
            let Some(status) = answered(&mut stream, &request).await else {
                break;
            };
            asked.fetch_add(1, Ordering::Relaxed);
            if status != 200 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Sends a request and reads its answer whole.
async fn answered(stream: &mut TcpStream, request: &str) -> Option<u16> {
    stream.write_all(request.as_bytes()).await.ok()?;
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    let (head, length) = loop {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        answer.extend_from_slice(&buffer[..count]);
        let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let length = head
            .split("content-length: ")
            .nth(1)?
            .lines()
            .next()?
            .parse::<usize>()
            .ok()?;
        break (head, end + 4 + length);
    };
    let mut rest = length.saturating_sub(answer.len());
    while rest > 0 {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        rest = rest.saturating_sub(count);
    }
    head.split(' ').nth(1)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_lists_or_of_bad_tokens_costs_no_lease_and_no_more_than_a_fifth_of_the_pace() {
    let stage = Stage::set().await;
    let asked = Arc::<AtomicU64>::default();
    let spawn = |count: usize, token: &dyn Fn(usize) -> String, paths: &[&str]| {
        let mut clients = JoinSet::new();
        for number in 0..count {
            // Everybody begins elsewhere.
            let mut paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            let length = paths.len();
            paths.rotate_left(number % length);
            clients.spawn(ask_again_and_again(
                stage.address.clone(),
                token(number),
                paths,
                Arc::clone(&asked),
            ));
        }
        clients
    };

    let lists = [
        "/v1/signals?status=DEAD&limit=500",
        "/v1/signals?name=nothing&limit=500",
        "/v1/queue?search=nothing&limit=500",
        "/v1/executions?search=nothing&limit=500",
        "/v1/executions?status=COMPLETED&limit=500",
        "/v1/overview?minutes=1440",
        "/v1/audit?actor=nobody&limit=500",
        "/v1/workspaces?limit=500",
        "/v1/alarms?search=nothing",
    ];
    let clients = spawn(
        100,
        &|number| {
            if number % 10 == 0 {
                stage.admin.clone()
            } else {
                stage.viewer.clone()
            }
        },
        &lists,
    );
    stage.stands("lists", clients, &asked).await;

    let guessed = |_| access::Secret::generate().expose().to_owned();
    let clients = spawn(100, &guessed, &["/v1/overview"]);
    stage.stands("tokens that open no door", clients, &asked).await;

    eventually("the server is ready", async || {
        stage.server.readiness().await.0 == 200
    })
    .await;
}
