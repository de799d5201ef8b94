//! What the storm blows over: a PostgreSQL of its own, servers with a line each, workspaces, workflows, whoever is called, and the
//! one way in which requests are made.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::RngExt as _;
use reqwest::Method;
use serde_json::Value;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use stationmaster_core::db::Database;
use stationmaster_postgres::{Binaries, Server, Settings, Shutdown};
use uuid::Uuid;

use crate::Storm;
use crate::ledger::{Ledger, Series};
use crate::receiver::Receiver;
use crate::support::{Launch, Process, Proxy, Temporal, Work, Worker, setting};

/// The limits of the workspaces, called rooms here. Those of the last two are changed.
const LIMITS: [i32; 6] = [1, 3, 6, 4, 2, 4];
pub(crate) const ROOMS: usize = LIMITS.len();
/// The rooms whose limits are changed; of all others the limit holds exactly, at every look.
pub(crate) const ALTERABLE: std::ops::Range<usize> = 4..6;
/// The room that signals lead to.
pub(crate) const SIGNALLED: usize = 3;
/// The series of alarms: every so many seconds, misfire, overlap.
pub(crate) const SERIES: [(i64, &str, &str); 6] = [
    (2, "coalesce", "allow"),
    (2, "catch_up", "allow"),
    (3, "skip", "allow"),
    (3, "coalesce", "queue"),
    (2, "catch_up", "queue"),
    (5, "coalesce", "skip"),
];
/// How long what is over is kept: longer than anybody repeats a request, and short enough to be pruned in the storm.
const RETENTION: &str = "20s";
/// No request is repeated for longer: its key is remembered as long as its item.
pub(crate) const REPEATED: Duration = Duration::from_secs(9);
const ANSWER: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Embedded,
    Temporal,
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "embedded" => Ok(Self::Embedded),
            "temporal" => Ok(Self::Temporal),
            other => Err(format!("there is no engine {other}")),
        }
    }
}

/// What an item runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Two calls and a nap between them.
    Calls,
    /// One call, then it fails as asked.
    Fails,
    /// Nothing.
    Nothing,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Calls, Kind::Fails, Kind::Nothing];

impl Kind {
    pub(crate) fn nodes(self) -> &'static [&'static str] {
        match self {
            Self::Calls => &["a", "b"],
            Self::Fails => &["a"],
            Self::Nothing => &[],
        }
    }

    fn graph(self, receiver: &str, room: usize) -> String {
        let call = |id: &str| {
            format!(
                r#"{{"id": "{id}", "type": "http", "url": "http://{receiver}/node/{room}", "body": {{}}}}"#
            )
        };
        match self {
            Self::Calls => format!(
                r#"{{"nodes": [{}, {{"id": "nap", "type": "wait", "seconds": 0.1}}, {}],
                     "edges": [{{"from": "a", "to": "nap"}}, {{"from": "nap", "to": "b"}}]}}"#,
                call("a"),
                call("b")
            ),
            Self::Fails => format!(
                r#"{{"nodes": [{}, {{"id": "no", "type": "fail", "message": "as asked"}}], "edges": [{{"from": "a", "to": "no"}}]}}"#,
                call("a")
            ),
            Self::Nothing => r#"{"nodes": [{"id": "nothing", "type": "noop"}]}"#.to_owned(),
        }
    }
}

/// A workspace.
pub(crate) struct Room {
    pub(crate) id: Uuid,
    pub(crate) limit: i32,
    pub(crate) definitions: HashMap<Kind, Uuid>,
}

/// A place for a server, and its own line to the database.
pub(crate) struct Post {
    pub(crate) line: Proxy,
    pub(crate) launch: Launch,
    /// Held by whoever does something to it.
    pub(crate) process: tokio::sync::Mutex<Process>,
    address: Mutex<Option<String>>,
}

impl Post {
    /// Nobody answers here for now.
    pub(crate) fn vacate(&self) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Puts another server into the place of one that is gone, and waits until it listens.
    pub(crate) async fn refill(&self, process: &mut Process) {
        *process = self.launch.start();
        self.listen(process).await;
    }

    async fn listen(&self, process: &mut Process) {
        let begun = Instant::now();
        while process.address().is_none() {
            process.assert_alive();
            assert!(
                begun.elapsed() < Duration::from_mins(2),
                "a server never listened"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = process.address();
    }
}

pub(crate) struct World {
    pub(crate) pool: PgPool,
    pub(crate) rooms: Vec<Room>,
    pub(crate) posts: Vec<Post>,
    pub(crate) receiver: Receiver,
    pub(crate) ledger: Ledger,
    pub(crate) engine: Engine,
    pub(crate) temporal: Option<(Temporal, Worker)>,
    http: reqwest::Client,
    cluster: Arc<Mutex<Server>>,
}

impl World {
    pub(crate) async fn new(storm: &Storm) -> Self {
        let cluster = tokio::task::spawn_blocking(cluster).await.unwrap();
        let (url, port) = (cluster.url("postgres"), cluster.port());
        let database = Database::new(&url, 1).expect("a URL");
        database.migrate().await.expect("the migrations can be applied");
        database.pool().close().await;
        let pool = PgPoolOptions::new().max_connections(10).acquire_timeout(ANSWER);
        let pool = pool.connect_lazy(&url).expect("a URL");
        let receiver = Receiver::start().await;
        let temporal = match storm.engine {
            Engine::Embedded => None,
            Engine::Temporal => {
                let temporal = Temporal::shared().await;
                let worker = Worker::start(&temporal, Work::CompleteAfter(Duration::from_millis(150)));
                Some((temporal, worker))
            }
        };
        let mut rooms = Vec::new();
        for number in 0..ROOMS {
            rooms.push(room(&pool, number, &receiver.address).await);
        }
        let launch = launch(&receiver.address, temporal.as_ref().map(|(temporal, _)| temporal));
        let mut posts = Vec::new();
        for _ in 0..storm.servers {
            posts.push(post(&launch, &url, port).await);
        }
        // Somebody else may have chosen one before; whichever is there serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let world = Self {
            pool,
            rooms,
            posts,
            receiver,
            ledger: Ledger::default(),
            engine: storm.engine,
            temporal,
            http: reqwest::Client::builder().timeout(ANSWER).build().unwrap(),
            cluster: Arc::new(Mutex::new(cluster)),
        };
        world.furnish().await;
        for post in &world.posts {
            let process = post.process.lock().await;
            crate::support::eventually("a server is ready", async || process.readiness().await.0 == 200)
                .await;
        }
        world
    }

    /// The trigger of the signals, and the series of alarms.
    async fn furnish(&self) {
        let trigger = "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('storm', 'thunder', $1)";
        let definition = self.rooms[SIGNALLED].definitions[&Kind::Calls];
        sqlx::query(trigger)
            .bind(definition)
            .execute(&self.pool)
            .await
            .unwrap();
        for (number, (every, misfire, overlap)) in SERIES.into_iter().enumerate() {
            let query = "select stationmaster.set_alarm($1, label => $2, cron_expr => $3, target_url => $4, misfire => $5,
                                                        catch_up => 3, overlap => $6)";
            let id: Uuid = sqlx::query_scalar(query)
                .bind(self.rooms[number % ROOMS].id)
                .bind(format!("series {number}"))
                .bind(format!("*/{every} * * * * *"))
                .bind(self.wake_url())
                .bind(misfire)
                .bind(overlap)
                .fetch_one(&self.pool)
                .await
                .unwrap();
            self.ledger.open().series.push(Series {
                id,
                every: every * 1_000,
                from: now(),
                pauses: Vec::new(),
                until: None,
            });
        }
    }

    pub(crate) fn wake_url(&self) -> String {
        format!("http://{}/wake", self.receiver.address)
    }

    /// The limits that were never changed.
    pub(crate) fn fixed(&self) -> impl Iterator<Item = (usize, &Room)> {
        self.rooms
            .iter()
            .enumerate()
            .filter(|(number, _)| !ALTERABLE.contains(number))
    }

    pub(crate) fn number_of(&self, workspace: Uuid) -> Option<usize> {
        self.rooms.iter().position(|room| room.id == workspace)
    }

    /// Looks how many wait before each room.
    pub(crate) async fn waiting(&self) {
        let query = "select workspace_id, count(*) from stationmaster.workflow_execution_queue where status = 'PENDING' group by 1";
        let rows: Result<Vec<(Uuid, i64)>, _> = sqlx::query_as(query).fetch_all(&self.pool).await;
        let Ok(rows) = rows else {
            return;
        };
        let room = |(workspace, count)| Some((self.number_of(workspace)?, usize::try_from(count).ok()?));
        self.ledger.open().backlog = rows.into_iter().filter_map(room).collect();
    }

    /// PostgreSQL crashes, and comes back after a while.
    pub(crate) async fn crash(&self, away: Duration) {
        self.with_cluster(|cluster| cluster.halt(Shutdown::Immediate))
            .await;
        tokio::time::sleep(away).await;
        self.with_cluster(|cluster| cluster.resume().expect("PostgreSQL comes back"))
            .await;
    }

    async fn with_cluster<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Server) -> T + Send + 'static,
    ) -> T {
        let cluster = Arc::clone(&self.cluster);
        let act = move || act(&mut cluster.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(act).await.unwrap()
    }

    /// Asks one of the servers; `None` when nobody could be asked or nobody knows what came of it.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let addresses: Vec<String> = self
            .posts
            .iter()
            .filter_map(|post| {
                post.address
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone()
            })
            .collect();
        if addresses.is_empty() {
            return None;
        }
        let address = &addresses[rand::rng().random_range(0..addresses.len())];
        let mut call = self.http.request(method, format!("http://{address}{path}"));
        if let Some(body) = body {
            call = call.json(body);
        }
        let answer = call.send().await.ok()?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await.ok()?;
        (status < 500 && status != 429)
            .then(|| (status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// Asks until somebody answers; `None`: nobody did in this time.
    pub(crate) async fn insist(
        &self,
        time: Duration,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(u16, Value)> {
        let begun = Instant::now();
        while begun.elapsed() < time {
            if let Some(answer) = self.ask(method.clone(), path, body).await {
                return Some(answer);
            }
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        None
    }
}

fn cluster() -> Server {
    let bin = PathBuf::from(setting("STATIONMASTER_TEST_POSTGRES_BIN"));
    let binaries = Binaries::find(Some(&bin)).expect("PostgreSQL is installed");
    let settings = Settings {
        max_connections: 200,
        ..Settings::throw_away(Path::new(env!("CARGO_TARGET_TMPDIR")))
    };
    Server::start(&binaries, &settings).expect("it starts")
}

async fn room(pool: &PgPool, number: usize, receiver: &str) -> Room {
    let limit = LIMITS[number];
    let query = "insert into stationmaster.workspaces (name, max_concurrent) values ($1, $2) returning id";
    let query = sqlx::query_scalar(query)
        .bind(format!("room-{number}"))
        .bind(limit);
    let id: Uuid = query.fetch_one(pool).await.unwrap();
    let mut definitions = HashMap::new();
    for kind in KINDS {
        let query = "insert into stationmaster.workflow_definitions (workspace_id, name) values ($1, $2) returning id";
        let query = sqlx::query_scalar(query)
            .bind(id)
            .bind(format!("{kind:?}").to_lowercase());
        let definition: Uuid = query.fetch_one(pool).await.unwrap();
        let query = "insert into stationmaster.workflow_definition_versions (workflow_definition_id, workflow) values ($1, $2::jsonb)";
        let query = sqlx::query(query)
            .bind(definition)
            .bind(kind.graph(receiver, number));
        query.execute(pool).await.unwrap();
        definitions.insert(kind, definition);
    }
    Room {
        id,
        limit,
        definitions,
    }
}

/// Short intervals, in the right proportions.
fn launch(receiver: &str, temporal: Option<&Temporal>) -> Launch {
    let launch = Launch::serve()
        .with("DATABASE_POOL", "6")
        .with("HTTP__DATABASE_POOL", "4")
        .with("HTTP__OPEN", "true")
        .with("HTTP__RATE_LIMIT", "100000")
        .with("SHUTDOWN_TIMEOUT", "10s")
        .with("EXECUTIONS__RETENTION", RETENTION)
        .with("EXECUTIONS__MAX_RECOVERIES", "1000")
        .with("EXECUTIONS__RECONCILE_INTERVAL", "5s")
        .with("EXECUTIONS__ALLOW_TARGETS", "127.0.0.1")
        .with("ALARMS__ALLOW_TARGETS", "127.0.0.1")
        .with("ALARMS__ROUTER_URL", &format!("http://{receiver}"))
        .with("ALARMS__MISFIRE_GRACE", "1s")
        .with("ALARMS__RETENTION", "30s")
        .with("DISPATCHERS__LEASE", "3s")
        .with("DISPATCHERS__HEARTBEAT_INTERVAL", "1s")
        .with("DISPATCHERS__STALE_AFTER", "5s")
        .with("DISPATCHERS__SCAN_INTERVAL", "2s")
        .with("DISPATCHERS__SECOND_LOOK", "500ms")
        .with("DISPATCHERS__CHECK_INTERVAL", "1s")
        .with("DISPATCHERS__SLA", "20s");
    match temporal {
        None => launch,
        Some(temporal) => launch.temporal(&temporal.address, &temporal.namespace),
    }
}

async fn post(launch: &Launch, url: &str, port: u16) -> Post {
    let line = Proxy::line_to(&format!("127.0.0.1:{port}")).await;
    let url = url.replace(&format!("127.0.0.1:{port}/"), &format!("{}/", line.address));
    let launch = launch.clone().with("DATABASE_URL", &url);
    let process = launch.start();
    let place = Post {
        line,
        launch,
        process: tokio::sync::Mutex::new(process),
        address: Mutex::default(),
    };
    place.listen(&mut *place.process.lock().await).await;
    place
}

/// Milliseconds, by the clock that this machine and its PostgreSQL share.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
