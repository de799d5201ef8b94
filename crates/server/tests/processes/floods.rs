//! Floods of requests, with a token and with none that opens the door, and of clients that take their time: they cost no lease and leave
//! the work its pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stationmaster_core::access::{self, NewToken, Role};
use stationmaster_core::db::Database;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::silence::asked_all_the_time;
use crate::support::{Launch, Process, SHORT, TestDatabase, eventually};

/// What is left of the pace under a flood: as it should be, and at least. The machine of a test has other things to do too, so that
/// only the second is insisted on.
const WANTED: f64 = 0.8;
const LEAST: f64 = 0.5;
/// How long a pace is measured, in each of some turns with a flood and without.
const MEASURED: Duration = Duration::from_secs(3);
const TURNS: usize = 4;
/// Connections that the server takes.
const CONNECTIONS: usize = 300;

/// Old work in the tables, more than anybody should read at once. No trigger sees it.
const OLD_WORK: &[&str] = &[
    "set session_replication_role = replica",
    "insert into stationmaster_internal.signals_inbox (id, project, name, payload)
     select 'old-' || n, 'shop', 'order', '{\"of\": \"long ago\"}' from generate_series(1, 300000) n",
    "insert into stationmaster_internal.signals_settled (signal_key, dispatcher_id, status, epoch, settled_by, settled_at, replays)
     select stationmaster_internal.signal_key('old-' || n, 'shop'), 'dispatcher-shop-default', 'ROUTED', 1, 'a test', now() - interval '1 hour', 0 from generate_series(1, 300000) n",
    "insert into stationmaster.audit (actor, action, subject, detail)
     select 'somebody', 'workspace.put', 'old-' || n, '{}' from generate_series(1, 100000) n",
    "set session_replication_role = origin",
    "analyze",
];

pub(crate) struct Stage {
    pub(crate) database: TestDatabase,
    pub(crate) server: Process,
    pub(crate) address: String,
    viewer: String,
    pub(crate) admin: String,
    asked: Arc<AtomicU64>,
    workflow: (Uuid, Uuid),
}

impl Stage {
    /// A server that has work for as long as the test takes, and much behind it.
    async fn set() -> Self {
        let connections = CONNECTIONS.to_string();
        Self::with(OLD_WORK, |launch| {
            launch.with("HTTP__MAX_CONNECTIONS", &connections)
        })
        .await
    }

    /// The same on a database with this before it, by a server that is started so.
    pub(crate) async fn with(before: &[&'static str], how: impl FnOnce(Launch) -> Launch) -> Self {
        let database = TestDatabase::new().await;
        let mut connection = database.pool.acquire().await.unwrap();
        for statement in before {
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
        let server = how(Launch::on(&database)).start_ready().await;
        database.enqueue(workflow, 30_000).await;
        database.until_count("COMPLETED", 100).await;
        Self {
            address: server.address().unwrap(),
            database,
            server,
            viewer,
            admin,
            asked: Arc::default(),
            workflow,
        }
    }

    /// More work, for those who take longer.
    pub(crate) async fn work_on(&self, items: i32) {
        self.database.enqueue(self.workflow, items).await;
    }

    /// Executions a second, for a while.
    pub(crate) async fn pace(&self) -> f64 {
        let completed = "select count(*) from stationmaster_internal.executions_finished";
        let (before, began) = (self.database.number(completed).await, Instant::now());
        tokio::time::sleep(MEASURED).await;
        let done = self.database.number(completed).await - before;
        f64::from(i32::try_from(done).unwrap()) / began.elapsed().as_secs_f64()
    }

    /// Under these clients no lease is lost, whoever asks whether the server lives is answered, and the work keeps its pace. The pace
    /// with them is compared to the one just before, a few times, and the best of it counts: what else the machine does makes
    /// every one of them worse and none better.
    pub(crate) async fn stands<C>(&self, flood: &str, clients: impl Fn() -> C) {
        let mut kept = 0.0;
        for _ in 0..TURNS {
            let before = self.pace().await;
            let mut under = 0.0;
            let clients = clients();
            let measured = async {
                // The flood must stand before it is measured.
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.asked.store(0, Ordering::Relaxed);
                under = self.pace().await;
            };
            answered_in_time(flood, &self.server, measured).await;
            drop(clients);
            let asked = self.asked.load(Ordering::Relaxed);
            println!(
                "{flood}: {before:.0} executions a second without, {under:.0} with, and {asked} requests answered"
            );
            kept = f64::max(kept, under / before);
            if kept >= WANTED {
                break;
            }
        }
        println!("{flood}: {kept:.2} of the pace is kept");
        let lost = self.server.said("lease had run out");
        assert_eq!(lost, 0, "{flood}: {}", self.server.log());
        assert!(kept >= LEAST, "{flood}: {kept:.2} of the pace is kept");
    }

    /// So many clients that ask these again and again.
    fn asking(&self, count: usize, token: impl Fn(usize) -> String, paths: &[&str]) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        for number in 0..count {
            // Everybody begins elsewhere.
            let mut paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            let length = paths.len();
            paths.rotate_left(number % length);
            let asked = Arc::clone(&self.asked);
            clients.spawn(ask_again_and_again(
                self.address.clone(),
                token(number),
                paths,
                asked,
            ));
        }
        clients
    }

    /// So many clients that send this, read nothing, send a piece again and again as long as they may, and come back when they are
    /// sent away.
    fn pestering(&self, count: usize, first: &str, piece: &'static str) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        for number in 0..count {
            let (address, first) = (self.address.clone(), first.to_owned());
            clients.spawn(async move {
                // More than there is room for come within a second and not in one instant, which this machine, with their side on it
                // too, could not carry.
                if count > CONNECTIONS {
                    tokio::time::sleep(Duration::from_millis(number as u64)).await;
                }
                pester(address, first, piece).await;
            });
        }
        clients
    }

    /// So many clients that ask and hang up.
    fn hanging_up(&self, count: usize, requests: &[String]) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        for number in 0..count {
            let (address, requests, asked) =
                (self.address.clone(), requests.to_vec(), Arc::clone(&self.asked));
            clients.spawn(async move {
                for request in requests.iter().cycle().skip(number) {
                    if let Ok(mut stream) = TcpStream::connect(&address).await
                        && stream.write_all(request.as_bytes()).await.is_ok()
                    {
                        asked.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            });
        }
        clients
    }
}

/// Whoever asks meanwhile whether the server lives and is ready is told so, each time within a second.
pub(crate) async fn answered_in_time(flood: &str, server: &Process, until: impl Future<Output = ()>) {
    let answers = asked_all_the_time(server, until).await;
    assert!(
        answers.iter().all(|(_, status)| *status == 200),
        "{flood}: {answers:?}"
    );
}

/// A connection that takes little of what is sent to it.
async fn connect_narrow(address: &str) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    socket.connect(address.parse().unwrap()).await
}

async fn pester(address: String, first: String, piece: &'static str) {
    loop {
        if let Ok(mut stream) = connect_narrow(&address).await {
            let mut next = stream.write_all(first.as_bytes()).await;
            while next.is_ok() {
                tokio::time::sleep(Duration::from_millis(200)).await;
                next = stream.write_all(piece.as_bytes()).await;
                let mut end = [0];
                if piece.is_empty() && stream.try_read(&mut end).is_ok_and(|count| count == 0) {
                    break;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
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
async fn a_flood_of_requests_or_of_connections_costs_no_lease_and_leaves_the_work_its_pace() {
    let stage = Stage::set().await;
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
    let token = |number: usize| {
        let is_admin = number.is_multiple_of(10);
        if is_admin { &stage.admin } else { &stage.viewer }.clone()
    };
    stage.stands("lists", || stage.asking(100, token, &lists)).await;

    let guessed = |_| access::Secret::generate().expose().to_owned();
    stage
        .stands("tokens that open no door", || {
            stage.asking(100, guessed, &["/v1/overview"])
        })
        .await;

    let head = |path: &str| {
        let (address, viewer) = (&stage.address, &stage.viewer);
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {viewer}\r\n\r\n")
    };
    let long = head("/v1/executions?status=COMPLETED&limit=500");
    let unread = [&long, &head("/v1/openapi.json")]
        .map(String::as_str)
        .concat()
        .repeat(20);
    stage
        .stands("answers that nobody reads", || stage.pestering(100, &unread, ""))
        .await;

    stage
        .stands("lists that nobody waits for", || {
            let heads: Vec<String> = lists.iter().map(|path| head(path)).collect();
            stage.hanging_up(100, &heads)
        })
        .await;

    let body = format!(
        "POST /v1/executions/bulk HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 100000\r\n\r\n{{",
        stage.address, stage.admin
    );
    stage
        .stands("bodies that do not end", || stage.pestering(100, &body, " "))
        .await;

    stage
        .stands("heads that do not end", || {
            stage.pestering(100, "GET /v1/overview HTTP/1.1\r\nx-long: ", "x")
        })
        .await;

    stage
        .stands("connections that ask nothing", || {
            stage.pestering(CONNECTIONS * 2, "", "")
        })
        .await;

    eventually("the server is ready", async || {
        stage.server.readiness().await.0 == 200
    })
    .await;
}
