//! A server's own lease: its heartbeat in the database, and what it may believe of itself.
//!
//! Past its lease a server must assume that others have taken over what it held, even when nobody has told it: it was
//! stopped, starved, or cut off. So the end of the lease is kept on the monotonic clock, counted from *before* the
//! heartbeat was sent, and whoever is about to act asks [`Presence::holder`] first. A server that lapsed comes back
//! under a new id; what it held under the old one is not its own any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;
use stationmaster_wire::{Reference, Server};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::audit;
use crate::db::{self, Database, Read as _, Write as _, statement, within};
use crate::engine::LOCAL;
use crate::engine::breaker::Breaker;
use crate::id::ServerId;
use crate::listen::Bells;
use crate::task::{Next, Pass};
use crate::words;

/// How long a heartbeat holds.
pub const LEASE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
struct Standing {
    id: ServerId,
    until: Option<Instant>,
    claiming: bool,
    /// The id before this one, whose lease ran out.
    former: Option<ServerId>,
    /// What somebody wishes of this server, as of the last heartbeat.
    wish: Option<Wish>,
}

words! {
    /// What somebody wishes of a server.
    pub enum Wish {
        /// To take no new work.
        Drain = "drain",
        /// And to leave.
        Exit = "exit",
    }
}

impl Standing {
    fn lapse(&mut self) {
        let lapsed = self.id;
        self.id = ServerId::new();
        self.until = None;
        self.former = Some(lapsed);
        tracing::warn!(server = %lapsed, comes_back_as = %self.id, "This server's lease had run out");
    }
}

/// Who this server is, and until when.
#[derive(Debug, Clone)]
pub struct Presence {
    name: Arc<str>,
    standing: Arc<Mutex<Standing>>,
    /// Held while a heartbeat is on its way, so that none arrives after the server has left and brings its row back.
    left: Arc<tokio::sync::Mutex<bool>>,
    /// Done when somebody wishes that this server leaves.
    unwanted: CancellationToken,
    lease: Duration,
}

impl Presence {
    /// A server that has not been heard of yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::with_lease(name, LEASE)
    }

    /// The same with another lease; tests use short ones.
    #[must_use]
    pub fn with_lease(name: &str, lease: Duration) -> Self {
        let standing = Standing {
            id: ServerId::new(),
            until: None,
            claiming: true,
            former: None,
            wish: None,
        };
        Self {
            name: name.into(),
            standing: Arc::new(Mutex::new(standing)),
            left: Arc::default(),
            unwanted: CancellationToken::new(),
            lease,
        }
    }

    /// The id under which this server may act now; `None` when its lease has run out or it was never registered.
    #[must_use]
    pub fn holder(&self) -> Option<ServerId> {
        let standing = self.standing.lock();
        standing
            .until
            .filter(|until| Instant::now() < *until)
            .map(|_| standing.id)
    }

    /// The id under which this server may take new work; `None` also while somebody wishes that it takes none.
    #[must_use]
    pub fn taker(&self) -> Option<ServerId> {
        self.holder().filter(|_| !self.is_draining())
    }

    /// Does somebody wish that this server takes no new work?
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.standing.lock().wish.is_some()
    }

    /// Returns when somebody wishes that this server leaves.
    pub async fn unwanted(&self) {
        self.unwanted.cancelled().await;
    }

    /// Is this still us, with time left?
    #[must_use]
    pub fn is(&self, id: ServerId) -> bool {
        self.holder() == Some(id)
    }

    /// The id, whether or not the lease holds. For words, not for deeds.
    #[must_use]
    pub fn id(&self) -> ServerId {
        self.standing.lock().id
    }

    /// The name given to this server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// From now on the heartbeat says that this server takes no new work.
    pub fn stop_claiming(&self) {
        self.standing.lock().claiming = false;
    }

    /// Sends one heartbeat; none any more once this server has left. Answers what else has happened.
    pub async fn beat(&self, database: &Database, engine: &str, engine_up: bool) -> Result<News, db::Error> {
        let left = self.left.lock().await;
        if *left {
            return Ok(News::default());
        }
        let asked_at = Instant::now();
        let before = {
            let mut standing = self.standing.lock();
            // Past its lease, whatever the table says: the row may have been taken away meanwhile, and what was held under
            // the old id is not its own any more.
            if standing.until.is_some_and(|until| asked_at >= until) {
                standing.lapse();
            }
            *standing
        };
        let news: Option<News> = sqlx::query_as(statement!("servers/beat"))
            .bind(before.id)
            .bind(&*self.name)
            .bind(env!("CARGO_PKG_VERSION"))
            .bind(engine)
            .bind(engine_up)
            .bind(before.claiming && before.wish.is_none())
            .bind(self.lease.as_secs_f64())
            .bind(before.former)
            .bind(before.wish)
            .maybe(&database.heart())
            .await?;
        let mut standing = self.standing.lock();
        // A row that had to be made anew was taken away: this server was taken for dead, and others may have what it held.
        let taken_for_dead = |news: &News| news.made && before.until.is_some();
        if news.is_none_or(|news| taken_for_dead(&news)) {
            standing.lapse();
        } else {
            standing.until = Some(asked_at + self.lease);
            standing.former = None;
            standing.wish = news.and_then(|news| news.wish);
        }
        if standing.wish == Some(Wish::Exit) {
            self.unwanted.cancel();
        }
        Ok(news.unwrap_or_default())
    }

    /// Leaves: gives up its duties and its row.
    pub async fn leave(&self, database: &Database) -> Result<(), db::Error> {
        *self.left.lock().await = true;
        let id = self.id();
        let duties = sqlx::query(statement!("duties/lay_down")).bind(id);
        duties.run(database).await?;
        let row = sqlx::query(statement!("servers/leave")).bind(id).bind(LOCAL);
        row.run(database).await?;
        Ok(())
    }
}

/// What has happened that somebody should see to, as of a heartbeat.
#[derive(Debug, Clone, Copy, Default, sqlx::FromRow)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "a row of answers, each to a question of its own"
)]
pub struct News {
    /// This server had no row until now.
    made: bool,
    /// What somebody wishes of this server.
    wish: Option<Wish>,
    /// There are servers whose lease has run out.
    pub lost_servers: bool,
    /// There are wakes in the hands of such.
    pub lost_wakes: bool,
    /// Somebody wants something cancelled.
    pub cancels: bool,
    /// Something runs.
    pub active: bool,
}

/// Sends the heartbeats, and wakes whoever has something to do by what they bring back.
pub(crate) struct Heartbeat {
    pub(crate) presence: Presence,
    pub(crate) bells: Bells,
    pub(crate) database: Database,
    pub(crate) engine: &'static str,
    pub(crate) breaker: Arc<Breaker>,
}

impl Pass for Heartbeat {
    fn name(&self) -> &'static str {
        "heartbeat"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let up = self.breaker.is_closed();
        let drained_before = self.presence.is_draining();
        let news = self.presence.beat(&self.database, self.engine, up).await?;
        if self.presence.is_draining() != drained_before {
            self.turn(drained_before).await?;
        }
        let rings = [
            (news.lost_servers, &self.bells.recovery),
            (news.lost_wakes, &self.bells.alarm_recovery),
            (news.cancels, &self.bells.cancel),
            (news.active, &self.bells.closes),
        ];
        for (_, bell) in rings.iter().filter(|(something, _)| *something) {
            bell.ring();
        }
        // A server that has just lost its standing registers again at once.
        let lapsed = self.presence.holder().is_none() && !*self.presence.left.lock().await;
        Ok(if lapsed {
            Next::Now
        } else {
            Next::After(self.presence.lease / 5)
        })
    }
}

impl Heartbeat {
    /// Somebody wishes that this server takes no new work, or does not any more: it says so at once, and who waits for work looks again.
    async fn turn(&self, drained_before: bool) -> Result<(), db::Error> {
        if drained_before {
            tracing::info!("This server takes work again");
        } else {
            tracing::info!("Somebody wishes it: this server takes no new work");
            let duties = sqlx::query(statement!("duties/lay_down")).bind(self.presence.id());
            duties.run(&self.database.keepers()).await?;
        }
        self.bells.ring_all();
        self.bells.heartbeat.ring();
        Ok(())
    }
}

/// The servers that are there; those too that have left, when they are asked for. What they have in hand is counted of the
/// workspaces in scope: how busy others are is nobody's business.
pub async fn list(database: &Database, all: bool) -> Result<Vec<Server>, db::Error> {
    sqlx::query_as(statement!("servers/list"))
        .bind(all)
        .bind(None::<Uuid>)
        .bind(None::<&str>)
        .bind(database.among(None))
        .all(&database.own())
        .await
}

/// Servers that were lost within the last hour and have not come back: others have taken over from them, and a person may want to know.
pub async fn lost_lately(database: &Database) -> Result<Vec<Server>, db::Error> {
    sqlx::query_as(statement!("servers/lost_lately"))
        .bind(database.among(None))
        .all(&database.own())
        .await
}

/// One server, also one that has left; of several with a name the one that is there, or else the last one. A name in whatever case, and
/// as much of an id as lists show, when it is the only one that begins so.
pub async fn find(database: &Database, which: &Reference) -> Result<Option<Server>, db::Error> {
    let (id, name) = match which {
        Reference::Id(id) => (Some(id), None),
        Reference::Name(name) => (None, Some(name)),
    };
    let query = sqlx::query_as(statement!("servers/list"))
        .bind(true)
        .bind(id)
        .bind(name)
        .bind(database.among(None));
    let found: Vec<Server> = query.all(&database.own()).await?;
    match (found.into_iter().next(), which) {
        (None, Reference::Name(text)) => Ok(resembling(list(database, true).await?, text)),
        (found, _) => Ok(found),
    }
}

/// The server that is meant by a name in another case, or by the beginning of an id.
fn resembling(servers: Vec<Server>, text: &str) -> Option<Server> {
    /// Less of an id is taken for a name, as everywhere.
    const SHORTEST: usize = 4;
    let wanted = text.trim().to_lowercase();
    let (named, others): (Vec<Server>, Vec<Server>) = servers
        .into_iter()
        .partition(|server| server.name.to_lowercase() == wanted);
    if let Some(server) = named.into_iter().next() {
        return Some(server);
    }
    let mut begin = others
        .into_iter()
        .filter(|server| wanted.len() >= SHORTEST && server.id.to_string().starts_with(&wanted));
    let first = begin.next()?;
    begin.next().is_none().then_some(first)
}

/// Wishes that a server takes no new work, or leaves, or does neither any more, with a line of the audit. Answers whether it is there.
pub async fn wish(
    database: &Database,
    server: ServerId,
    wish: Option<Wish>,
    actor: &str,
) -> Result<bool, db::Error> {
    let mut transaction = within(database.own().begin()).await?;
    let query = sqlx::query_scalar(statement!("servers/wish"))
        .bind(server)
        .bind(wish);
    let name: Option<String> = within(query.fetch_optional(&mut *transaction)).await?;
    let Some(name) = name else {
        return Ok(false);
    };
    let (action, detail) = match wish {
        Some(wish) => (
            "server.drain",
            json!({ "name": name, "exit": wish == Wish::Exit }),
        ),
        None => ("server.resume", json!({ "name": name })),
    };
    audit::write(&mut transaction, actor, action, None, &server.to_string(), detail).await?;
    within(transaction.commit()).await?;
    Ok(true)
}
