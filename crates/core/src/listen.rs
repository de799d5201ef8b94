//! Notifications: one direct connection that turns `NOTIFY stationmaster` into rings of bells.
//!
//! A notification only saves waiting. Nothing is true because of it, and a lost one costs a poll interval. A connection on which
//! nothing is heard looks like one that is dead, so it is asked for a sign of life when nothing has come for a while.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio_util::sync::CancellationToken;

use crate::db::{self, Database, within};
use crate::retry::Backoff;
use crate::task::Bell;

const RECONNECT: Backoff = Backoff {
    base: Duration::from_millis(200),
    cap: Duration::from_secs(5),
};

/// Silence after which the connection must show that it is alive, and how long that may take.
const SIGN_OF_LIFE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(3));

/// The bells that notifications ring.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bells {
    pub(crate) queue: Bell,
    pub(crate) cancel: Bell,
    /// Tokens have changed.
    pub(crate) access: Bell,
    pub(crate) alarms: Bell,
    /// Rung from inside: there are alarms whose next fire is not known.
    pub(crate) planner: Bell,
    pub(crate) signals: Bell,
    /// The same: what nobody owns, or rests, may be wanted.
    pub(crate) dispatchers: Bell,
    /// There is an operation to carry out.
    pub(crate) operations: Bell,
    /// Rung from inside: the engine has come or gone, and the others should know.
    pub(crate) heartbeat: Bell,
    /// Rung from inside: something runs, and may end.
    pub(crate) closes: Bell,
    /// Rung from inside: there are servers whose lease has run out.
    pub(crate) recovery: Bell,
    /// Rung from inside: there are wakes in the hands of such.
    pub(crate) alarm_recovery: Bell,
}

impl Bells {
    /// Something may have been missed: everybody looks for himself.
    pub(crate) fn ring_all(&self) {
        let Self {
            queue,
            cancel,
            access,
            alarms,
            planner,
            signals,
            dispatchers,
            operations,
            heartbeat,
            closes,
            recovery,
            alarm_recovery,
        } = self;
        for bell in [
            queue,
            cancel,
            access,
            alarms,
            planner,
            signals,
            dispatchers,
            operations,
        ] {
            bell.ring();
        }
        for bell in [heartbeat, closes, recovery, alarm_recovery] {
            bell.ring();
        }
    }
}

/// Listens until told to stop, over any number of lost connections.
pub(crate) async fn run(database: Database, bells: Bells, stop: CancellationToken) {
    let mut failures = 0;
    while !stop.is_cancelled() {
        tokio::select! {
            () = stop.cancelled() => return,
            result = listen(&database, &bells) => match result {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    tracing::debug!(%error, failures, "The listener lost its connection");
                }
            },
        }
        // Something may have been missed while nobody listened.
        bells.ring_all();
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RECONNECT.wait(failures.max(1)).max(RECONNECT.base)) => {}
        }
    }
}

async fn listen(database: &Database, bells: &Bells) -> Result<(), db::Error> {
    // A pool of one, made anew for every connection, keeps the listener away from the pool that claims use.
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(5));
    let pool = within(pool.connect_with(database.options())).await?;
    let mut listener = within(PgListener::connect_with(&pool)).await?;
    within(listener.listen("stationmaster")).await?;
    bells.ring_all();
    let (quiet, patience) = SIGN_OF_LIFE;
    loop {
        let Ok(heard) = tokio::time::timeout(quiet, listener.try_recv()).await else {
            let sign = within(sqlx::query("select").execute(&mut listener));
            let Ok(sign) = tokio::time::timeout(patience, sign).await else {
                return Err(db::Error::Silent);
            };
            sign?;
            continue;
        };
        let Some(notification) = heard? else {
            return Ok(());
        };
        match notification.payload() {
            "cancel" => bells.cancel.ring(),
            "access" => bells.access.ring(),
            "alarms" => bells.alarms.ring(),
            "signals" => {
                bells.signals.ring();
                bells.dispatchers.ring();
            }
            "operations" => bells.operations.ring(),
            // What happened to dispatchers is for those who watch, not for those who work.
            "dispatchers" => {}
            _ => bells.queue.ring(),
        }
    }
}
