//! A server's own lease: its heartbeat in the database, and what it may believe of itself.
//!
//! Past its lease a server must assume that others have taken over what it held, even when nobody has told it: it was
//! stopped, starved, or cut off. So the end of the lease is kept on the monotonic clock, counted from *before* the
//! heartbeat was sent, and whoever is about to act asks [`Presence::holder`] first. A server that lapsed comes back
//! under a new id; what it held under the old one is not its own any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stationmaster_wire::Server;

use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::engine::LOCAL;
use crate::engine::breaker::Breaker;
use crate::id::ServerId;
use crate::listen::Bells;
use crate::task::{Next, Pass};

/// How long a heartbeat holds.
pub const LEASE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
struct Standing {
    id: ServerId,
    until: Option<Instant>,
    claiming: bool,
}

impl Standing {
    fn lapse(&mut self) {
        let lapsed = self.id;
        self.id = ServerId::new();
        self.until = None;
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
        };
        Self {
            name: name.into(),
            standing: Arc::new(Mutex::new(standing)),
            left: Arc::default(),
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
            .bind(before.claiming)
            .bind(self.lease.as_secs_f64())
            .maybe(&database.keepers())
            .await?;
        let mut standing = self.standing.lock();
        // A row that had to be made anew was taken away: this server was taken for dead, and others may have what it held.
        let taken_for_dead = |news: &News| news.made && before.until.is_some();
        if news.is_none_or(|news| taken_for_dead(&news)) {
            standing.lapse();
        } else {
            standing.until = Some(asked_at + self.lease);
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
        let news = self.presence.beat(&self.database, self.engine, up).await?;
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

/// Every server known.
pub async fn list(database: &Database) -> Result<Vec<Server>, db::Error> {
    sqlx::query_as(statement!("servers/list"))
        .all(&database.own())
        .await
}
