//! The feed: numbers events while somebody listens, and hands the newest to every listener of this server at once. What a
//! listener has missed it reads from the database, so nothing is buffered for the slow.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_client::wire::Event;
use stationmaster_core::db::{self, Database};
use stationmaster_core::events;
use stationmaster_core::task::{Bell, Next, Pass};
use tokio::sync::watch;

/// How often new events are looked for while somebody listens.
const EVERY: Duration = Duration::from_millis(200);
/// How often it is looked whether somebody does; whoever begins rings.
const IDLE: Duration = Duration::from_secs(5);
/// Events handed over at once.
pub(super) const BATCH: i64 = 500;

/// The newest events: those after one position, up to another.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) after: i64,
    pub(super) up_to: i64,
    pub(super) events: Vec<Event>,
}

/// Where listeners hear.
#[derive(Clone)]
pub(super) struct Feed {
    newest: Arc<watch::Sender<Arc<Batch>>>,
    bell: Bell,
}

impl Feed {
    pub(super) fn new() -> Self {
        Self {
            newest: Arc::new(watch::Sender::new(Arc::default())),
            bell: Bell::default(),
        }
    }

    /// Listens from now on.
    pub(super) fn listen(&self) -> watch::Receiver<Arc<Batch>> {
        let receiver = self.newest.subscribe();
        self.bell.ring();
        receiver
    }

    pub(super) fn bell(&self) -> Bell {
        self.bell.clone()
    }

    pub(super) fn pump(&self, database: Database) -> Pump {
        Pump {
            database,
            newest: Arc::clone(&self.newest),
            position: None,
        }
    }
}

/// Numbers and hands over.
pub(super) struct Pump {
    database: Database,
    newest: Arc<watch::Sender<Arc<Batch>>>,
    position: Option<i64>,
}

impl Pass for Pump {
    fn name(&self) -> &'static str {
        "events"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if self.newest.receiver_count() == 0 {
            self.position = None;
            return Ok(Next::After(IDLE));
        }
        events::number(&self.database).await?;
        let kept = events::kept(&self.database).await?;
        let Some(position) = self.position else {
            // Whoever began to listen before now may have missed something: an empty batch tells where the feed stands.
            return Ok(self.hand_over(kept.newest, kept.newest, Vec::new()));
        };
        if kept.newest <= position {
            return Ok(Next::After(EVERY));
        }
        let events = events::after(&self.database, None, position, kept.newest, BATCH).await?;
        let whole = i64::try_from(events.len()).is_ok_and(|count| count < BATCH);
        let up_to = match events.last() {
            Some(last) if !whole => last.position,
            _ => kept.newest,
        };
        let next = self.hand_over(position, up_to, events);
        Ok(if whole { next } else { Next::Now })
    }
}

impl Pump {
    fn hand_over(&mut self, after: i64, up_to: i64, events: Vec<Event>) -> Next {
        self.position = Some(up_to);
        self.newest.send_replace(Arc::new(Batch { after, up_to, events }));
        Next::After(EVERY)
    }
}
