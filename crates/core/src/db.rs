//! The way to PostgreSQL: its connections, and what every caller must know of errors.
//!
//! No call waits for ever: [`within`] bounds each of them, because a hung call would stop the loop that made it; and when the
//! watch (`watch.rs`) says that the database has gone silent, all of them return at once.
//!
//! Who needs a connection does not wait for those who need many: a server's own heartbeat has one (`Database::heart`), what keeps leases
//! alive has its own (`Database::keepers`), and so have requests ([`Database::with_requests`]) and whoever scrapes (`Database::scrape`),
//! so that no flood of them costs a lease.

use std::future::Future;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::sync::Notify;

use crate::hosts::{Hosts, Reached};
use crate::pool::{Leaving, Pool};
use crate::session::Behalf;
pub(crate) use crate::session::{Read, Write};
use crate::tls;

/// Reads a statement from `sql/`, at compile time.
macro_rules! statement {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $path, ".sql"))
    };
}
pub(crate) use statement;

/// The longest that a single call may take.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Connections for what keeps leases alive. The heartbeat of the server, on which all others depend, shares its own with nobody: a renewal
/// may wait for a table that somebody keeps locked.
const KEEPERS: u32 = 2;
const HEART: u32 = 2;
/// Connections for what is told to whoever scrapes. They are made when somebody does.
const SCRAPE: u32 = 2;
/// What holds for every session of ours, whatever a role or a database brings along: the bounds on our calls are our own, a
/// connection that waits for work is not to be closed for that, and later statements of a transaction see what has been committed since.
pub(crate) const SESSION: [(&str, &str); 6] = [
    ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
];
/// Of what the work and the requests do. How long PostgreSQL waits for the next statement of a transaction before it ends it: a server
/// that is cut off must not hold its locks for longer, and PostgreSQL does not know that nobody is there any more. And how long a
/// statement may take whose caller has given up long ago.
const BOUNDS: [(&str, &str); 2] = [
    ("idle_in_transaction_session_timeout", "4s"),
    ("statement_timeout", "60s"),
];
/// Of what keeps leases alive, and of what is told to whoever scrapes: an answer that comes later is of no use to anybody, and callers that gave up
/// must not pile up behind a table that somebody keeps locked.
const KEEPERS_BOUND: [(&str, &str); 1] = [("statement_timeout", "5s")];
/// The same where a pooler lets no parameter of a session pass.
const BEGIN_BEHIND_POOLER: &str = "begin; set local idle_in_transaction_session_timeout = '4s'; \
                                   set local statement_timeout = '60s'; set local lock_timeout = 0; \
                                   set transaction isolation level read committed read write";
/// And where it gives us sessions in which others have left statements, under the names that we would use.
const BEGIN_UNPREPARED: &str = "begin; set local idle_in_transaction_session_timeout = '4s'; \
                                set local statement_timeout = '60s'; set local lock_timeout = 0; \
                                set transaction isolation level read committed read write; deallocate all";
/// How long a connection of a pool is waited for.
const POOL_WAIT: Duration = Duration::from_secs(10);
/// What keeps leases alive is bounded to five seconds by itself, and a heartbeat must not wait for that long.
const KEEPERS_WAIT: Duration = Duration::from_secs(6);
const HEART_WAIT: Duration = Duration::from_secs(2);
/// Whoever asks a server is told sooner that all of them are in use: a command gives up after ten seconds, and tries again before.
const REQUESTS_WAIT: Duration = Duration::from_secs(4);
/// Connections that a server opens beside its pools: for what keeps leases alive, for scrapes, for the watch, and for notifications.
pub const BESIDE_POOLS: u32 = HEART + KEEPERS + SCRAPE + 2;

/// Told when a database of this process has gone silent: calls under way are given up.
static SILENCE: Notify = Notify::const_new();

/// Repeats after a deadlock.
const CONFLICTS: u32 = 4;

/// The classes of errors that are about what is written, and not about the moment, the connection or the schema. A constraint or a trigger
/// (somebody may have added one of his own) refuses rows.
pub(crate) const ABOUT_A_ROW: [&str; 6] = ["21", "22", "23", "44", "54", "P0"];
/// The oldest PostgreSQL that has what we need.
const OLDEST_SERVER: u32 = 15;

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be understood.
    #[error("the database URL is not valid: {0}. It looks like postgres://user:password@host:5432/database")]
    Url(#[source] sqlx::Error),
    /// PostgreSQL refused, or could not be reached.
    #[error("database: {0}")]
    Sql(#[source] sqlx::Error),
    /// It is there, and one of us does not trust the other; the words say why, and what to set.
    #[error("{0}")]
    Untrusted(String),
    /// A part of the schema could not be applied.
    #[error("{step} could not be applied: {source}")]
    Migration {
        /// Which.
        step: String,
        /// What PostgreSQL said.
        source: sqlx::Error,
    },
    /// The call took too long and was given up.
    #[error("the database did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The same, for each of those whose requests went together.
    #[error(transparent)]
    Shared(Arc<Error>),
    /// Of several hosts none will do.
    #[error("no host of the database takes writes: {0}")]
    NoHost(String),
    /// It answers, and all our connections to it are in use.
    #[error("all connections to the database are in use")]
    Busy,
    /// It has gone silent: what was sent is not answered, and never will be.
    #[error("the database has gone silent")]
    Silent,
    /// What is prepared on one connection may be there on another, and not on its own.
    #[error("database_url leads through a pooler in which prepared statements do not survive")]
    LostStatements,
    /// Too old to use.
    #[error("PostgreSQL {found} is too old: version {OLDEST_SERVER} or newer is needed")]
    TooOld {
        /// The version that answered.
        found: String,
    },
    /// The tables are not there, or not all of them.
    #[error("{}", other_tables(*.found, *.needed))]
    Schema {
        /// The newest migration applied.
        found: i64,
        /// The newest migration known.
        needed: i64,
    },
    /// The tables are there, and what stands on them is that of another version.
    #[error("functions and views of the database are those of another version ({}): run `stationmaster migrate`", .0.join(", "))]
    Parts(Vec<&'static str>),
    /// The same, and that version is newer than this program.
    #[error(
        "functions and views of the database are those of version {0}, which is newer than this program: use that version"
    )]
    NewerParts(String),
    /// The tables are those of a program before the first release.
    #[error(
        "this database was made before the first release, and its tables cannot be carried over: use a new database, or drop them \
         (drop schema if exists stationmaster, stationmaster_internal cascade) and run `stationmaster migrate`"
    )]
    BeforeRelease,
    /// One of the two schemas was dropped without the other.
    #[error(
        "the schema {there} is there and {missing} is not, although they belong together: restore both, or drop the other one too \
         (drop schema {there} cascade) and run `stationmaster migrate`"
    )]
    Torn {
        /// The one that is left.
        there: &'static str,
        /// The one that is gone.
        missing: &'static str,
    },
    /// Something that is not ours to mend is missing or cannot be used; the words say what to do.
    #[error("{0}")]
    Unusable(String),
}

fn other_tables(found: i64, needed: i64) -> String {
    if found > needed {
        return format!(
            "the tables of this database are of a newer version ({found}) than this program knows ({needed})"
        );
    }
    format!(
        "the database has schema version {found}, this program needs {needed}: run `stationmaster migrate`"
    )
}

impl Error {
    /// The SQLSTATE, when PostgreSQL gave one.
    #[must_use]
    pub fn code(&self) -> Option<String> {
        match self {
            Self::Shared(error) => error.code(),
            Self::Sql(sqlx::Error::Database(error))
            | Self::Migration {
                source: sqlx::Error::Database(error),
                ..
            } => error.code().map(std::borrow::Cow::into_owned),
            _ => None,
        }
    }

    /// Does its SQLSTATE begin like one of these?
    pub(crate) fn is_of(&self, classes: &[&str]) -> bool {
        let code = self.code().unwrap_or_default();
        classes.iter().any(|class| code.starts_with(class))
    }

    /// Deadlock or serialization failure: the same call may well succeed now.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.is_of(&["40P01", "40001"])
    }

    /// It could not be reached, would not let us in, or has no room for us now: later the same call may succeed.
    #[must_use]
    pub fn is_away(&self) -> bool {
        use sqlx::Error::{Io, PoolClosed, PoolTimedOut, Tls};
        match self {
            Self::Shared(error) => error.is_away(),
            Self::Timeout(_)
            | Self::Busy
            | Self::Silent
            | Self::NoHost(_)
            | Self::Untrusted(_)
            | Self::Sql(Io(_) | Tls(_) | PoolTimedOut | PoolClosed) => true,
            // The last is a replica, before another host is chosen.
            _ => self.is_of(&["08", "28", "3D000", "53", "57", "25006"]),
        }
    }

    /// It answers, and others have all the connections that we have to it.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Shared(error) => error.is_busy(),
            error => matches!(error, Self::Busy),
        }
    }

    /// PostgreSQL's own words, for errors that it raised about the request.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Shared(error) => error.message(),
            Self::Sql(sqlx::Error::Database(error)) => error.message().to_owned(),
            other => other.to_string(),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if let Some(words) = tls::explain(&error, &tls::POSTGRES) {
            return Self::Untrusted(words);
        }
        // Nobody got a connection in time: either none can be made, or others have them all.
        if matches!(error, sqlx::Error::PoolTimedOut) && answers() {
            return Self::Busy;
        }
        let error = Self::Sql(error);
        if error.is_of(&["53100"]) {
            *NO_ROOM.lock() = Some((Instant::now(), error.message()));
        }
        error
    }
}

/// When PostgreSQL last said to somebody that its disk is full, and its words.
static NO_ROOM: Mutex<Option<(Instant, String)>> = Mutex::new(None);

/// For so long it is taken to be so still: whoever has something to write tries again more often.
const NO_ROOM_FOR: Duration = Duration::from_secs(10);

/// Has PostgreSQL no room to write, as far as was seen lately?
pub(crate) fn no_room() -> Option<String> {
    let lately = NO_ROOM
        .lock()
        .clone()
        .filter(|(at, _)| at.elapsed() < NO_ROOM_FOR);
    lately.map(|(_, words)| format!("the database has no room to write: {words}"))
}

/// When the watch last heard from the database of this process.
static HEARD_AT: Mutex<Option<Instant>> = Mutex::new(None);

/// The watch looks every second, and is patient for another.
const HEARD_FOR: Duration = Duration::from_secs(5);

/// Notes that the database answers whoever has a connection to it.
pub(crate) fn heard() {
    *HEARD_AT.lock() = Some(Instant::now());
}

/// Does the database answer, as far as was seen lately?
fn answers() -> bool {
    HEARD_AT.lock().is_some_and(|at| at.elapsed() < HEARD_FOR)
}

/// Runs a call, or several of them, with a bound on their time.
pub async fn within<T, E: Into<Error>>(call: impl Future<Output = Result<T, E>>) -> Result<T, Error> {
    let mut call = std::pin::pin!(tokio::time::timeout(CALL_TIMEOUT, call));
    // Made after the call and so dropped before it: whoever looks after a connection that comes back finds the note.
    let leaving = Leaving;
    let result = tokio::select! {
        biased;
        result = &mut call => match result {
            Ok(result) => result.map_err(Into::into),
            Err(_) => return Err(Error::Timeout(CALL_TIMEOUT)),
        },
        () = SILENCE.notified() => return Err(Error::Silent),
    };
    std::mem::forget(leaving);
    result
}

/// Repeats, a few times, what PostgreSQL ended because two waited for each other; `is_conflict` tells of an error whether it is that.
pub(crate) async fn despite_conflicts<T, E, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
    is_conflict: impl Fn(&E) -> bool,
) -> Result<T, E> {
    for _ in 0..CONFLICTS {
        match attempt().await {
            Err(error) if is_conflict(&error) => {}
            other => return other,
        }
    }
    attempt().await
}

/// One column of many rows, as a statement takes it.
pub(crate) fn column<'a, R: 'a, T>(
    rows: impl IntoIterator<Item = &'a R>,
    get: impl Fn(&'a R) -> T,
) -> Vec<T> {
    rows.into_iter().map(get).collect()
}

/// What the database's clock shows.
pub(crate) async fn now(connection: &mut PgConnection) -> Result<jiff::Timestamp, Error> {
    let query = sqlx::query_scalar::<_, jiff_sqlx::Timestamp>("select clock_timestamp()");
    Ok(within(query.fetch_one(connection)).await?.to_jiff())
}

/// Reads a word that a function of the database answered.
pub(crate) fn word<W: FromStr<Err = crate::words::UnknownWord>>(text: &str) -> Result<W, Error> {
    text.parse()
        .map_err(|unknown: crate::words::UnknownWord| Error::Sql(sqlx::Error::Decode(unknown.into())))
}

/// Connections, and the address for those who need one of their own. A copy made by [`Database::on_behalf`] acts for somebody:
/// see [`crate::session`].
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) pool: Pool,
    heart: Pool,
    keepers: Pool,
    scrape: Pool,
    /// Where copies that act for somebody get their connections.
    pub(crate) requests: Pool,
    hosts: Arc<Hosts>,
    /// The same without the pooler in between, where there is one.
    direct: Arc<Hosts>,
    /// Does nothing that is prepared outlive its transaction?
    pub(crate) unprepared: bool,
    pub(crate) behalf: Option<Arc<Behalf>>,
    pub(crate) wall: Arc<AtomicBool>,
}

impl Database {
    /// Prepares the connections; they are made when first used, so that a database that is away is an error of the call, not of the start.
    pub fn new(url: &str, max_connections: u32) -> Result<Self, Error> {
        let hosts = Arc::new(Hosts::read(url)?);
        let options = hosts.options().clone().options(SESSION).options(BOUNDS);
        let pool = Pool::new(&options, max_connections, POOL_WAIT);
        let bound = options.options(KEEPERS_BOUND);
        Ok(Self {
            heart: Pool::of_brief_calls(&bound, HEART, HEART_WAIT),
            keepers: Pool::of_brief_calls(&bound, KEEPERS, KEEPERS_WAIT),
            scrape: Pool::of_brief_calls(&bound, SCRAPE, KEEPERS_WAIT),
            requests: pool.clone(),
            pool,
            direct: Arc::clone(&hosts),
            unprepared: false,
            hosts,
            behalf: None,
            wall: Arc::default(),
        })
    }

    /// Gives so many connections to those who act for somebody, who share those of the program otherwise.
    #[must_use]
    pub fn with_requests(mut self, max_connections: u32) -> Self {
        let options = self.pool.get().connect_options();
        self.requests = Pool::new(&options, max_connections, REQUESTS_WAIT);
        self
    }

    /// The same database by the connections of requests, for what is done for whoever asks, before it is known who that is too.
    #[must_use]
    pub fn for_requests(&self) -> Self {
        Self {
            pool: self.requests.clone(),
            ..self.clone()
        }
    }

    /// Says that the address leads to a pooler that hands out transactions, and which one leads to the database itself, for what
    /// needs a session of its own: notifications, the watch, migrations.
    pub fn behind_pooler(mut self, direct_url: &str) -> Result<Self, Error> {
        self.direct = Arc::new(Hosts::read(direct_url)?);
        self.tell_pools();
        Ok(self)
    }

    /// Says that statements which were prepared in one transaction are not there in the next, or are those of somebody else: everything
    /// runs in a transaction, and prepares what it needs there.
    #[must_use]
    pub fn without_prepared(mut self) -> Self {
        self.unprepared = true;
        self.tell_pools();
        self
    }

    /// Is there a pooler on the way, and another way past it?
    pub(crate) fn is_pooled(&self) -> bool {
        !Arc::ptr_eq(&self.hosts, &self.direct)
    }

    /// From now on the pools connect to the host that was chosen, in the way that leads there.
    fn tell_pools(&self) {
        let mut options = self.hosts.options().clone();
        options = if self.is_pooled() {
            // A pooler takes no parameter that it does not know.
            options.extra_float_digits(None)
        } else {
            options.options(SESSION).options(BOUNDS)
        };
        if self.unprepared {
            options = options.statement_cache_capacity(0);
        }
        for pool in [&self.pool, &self.requests] {
            pool.get().set_connect_options(options.clone());
        }
        let bound = if self.is_pooled() {
            options
        } else {
            options.options(KEEPERS_BOUND)
        };
        for pool in [&self.heart, &self.keepers, &self.scrape] {
            pool.get().set_connect_options(bound.clone());
        }
    }

    /// Begins a transaction, as ourselves.
    pub(crate) async fn begin(&self) -> Result<sqlx::Transaction<'static, sqlx::Postgres>, sqlx::Error> {
        match (self.unprepared, self.is_pooled()) {
            (true, _) => self.pool.get().begin_with(BEGIN_UNPREPARED).await,
            (false, true) => self.pool.get().begin_with(BEGIN_BEHIND_POOLER).await,
            (false, false) => self.pool.get().begin().await,
        }
    }

    /// The program's own, whoever this one acts for.
    pub(crate) fn own(&self) -> Self {
        Self {
            behalf: None,
            ..self.clone()
        }
    }

    /// The pool, as it is now.
    #[must_use]
    pub fn pool(&self) -> PgPool {
        self.pool.get()
    }

    /// The pools by name, as they are now; requests have one of their own in a server.
    pub(crate) fn pools(&self) -> Vec<(&'static str, PgPool)> {
        let mut pools = vec![
            ("work", self.pool.get()),
            ("heart", self.heart.get()),
            ("keepers", self.keepers.get()),
            ("scrape", self.scrape.get()),
        ];
        if !self.pool.is(&self.requests) {
            pools.push(("requests", self.requests.get()));
        }
        pools
    }

    /// The same database by connections of their own, for what keeps leases alive and nothing that takes long.
    pub(crate) fn keepers(&self) -> Self {
        Self {
            pool: self.keepers.clone(),
            ..self.clone()
        }
    }

    /// The same by the connection of this server's own heartbeat.
    pub(crate) fn heart(&self) -> Self {
        Self {
            pool: self.heart.clone(),
            ..self.clone()
        }
    }

    /// The same for what is told to whoever scrapes, which may take long.
    pub(crate) fn scrape(&self) -> Self {
        Self {
            pool: self.scrape.clone(),
            ..self.clone()
        }
    }

    /// How to reach the database itself for a session of one's own.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.direct.options().clone().options(SESSION)
    }

    /// The same, without what our sessions set for themselves.
    pub(crate) fn plain_options(&self) -> PgConnectOptions {
        self.direct.options().clone()
    }

    /// Of several hosts, chooses the one that takes writes. Whoever begins to use a database calls this first; while it is used the
    /// watch looks after it.
    pub async fn choose_host(&self) -> Result<(), Error> {
        if !self.direct.are_several() {
            return Ok(());
        }
        match self.reach().await {
            Reached::Connection(connection, is_another) => {
                if is_another {
                    self.move_over();
                }
                Ok(connection.close().await?)
            }
            Reached::Refused(error) => Err(error),
            Reached::Silence => Err(Error::Silent),
        }
    }

    /// A connection of one's own, to the host that takes writes. When that is another one than before, [`Database::move_over`] is next.
    pub(crate) async fn reach(&self) -> Reached {
        self.direct.reach().await
    }

    /// A connection of one's own through the pooler that has answered; none: it does not, or not soon.
    pub(crate) async fn reach_pooler(&self) -> Option<PgConnection> {
        let options = PgConnectOptions::clone(&self.pool.get().connect_options());
        let reach = async {
            let mut connection = PgConnection::connect_with(&options).await?;
            connection.ping().await?;
            Ok::<_, sqlx::Error>(connection)
        };
        tokio::time::timeout(crate::hosts::PATIENCE, reach)
            .await
            .ok()?
            .ok()
    }

    /// Everybody goes to the host that was chosen; where a pooler leads, it knows by itself.
    pub(crate) fn move_over(&self) {
        self.tell_pools();
        self.give_up();
    }

    /// Is whoever answers on this connection still there, and still the one that takes writes?
    pub(crate) async fn ask_for_life(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.direct.are_several() {
            return self.direct.takes_writes(connection).await;
        }
        connection.ping().await
    }

    /// What was sent until now is not waited for any longer, and no connection from before is used again.
    pub(crate) fn give_up(&self) {
        for pool in [
            &self.pool,
            &self.heart,
            &self.keepers,
            &self.scrape,
            &self.requests,
        ] {
            pool.renew();
        }
        SILENCE.notify_waiters();
    }

    /// Refuses a PostgreSQL that is too old.
    pub(crate) async fn check_server(&self) -> Result<(), Error> {
        let query =
            "select current_setting('server_version_num')::integer, current_setting('server_version')";
        let (number, found): (i32, String) = sqlx::query_as(query).one(&self.own()).await?;
        if u32::try_from(number).unwrap_or_default() / 10_000 < OLDEST_SERVER {
            return Err(Error::TooOld { found });
        }
        Ok(())
    }
}
