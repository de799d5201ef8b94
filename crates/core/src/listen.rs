//! Notifications: one direct connection that turns `NOTIFY stationmaster` into rings of bells.
//!
//! A notification only saves waiting. Nothing is true because of it, and a lost one costs a poll interval.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio_util::sync::CancellationToken;

use crate::db::Database;
use crate::retry::Backoff;
use crate::task::Bell;

const RECONNECT: Backoff = Backoff {
    base: Duration::from_millis(200),
    cap: Duration::from_secs(5),
};

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
    /// Rung from inside: the engine has come or gone, and the others should know.
    pub(crate) heartbeat: Bell,
}

impl Bells {
    /// Something may have come in without a word.
    fn ring_for_work(&self) {
        for bell in [&self.queue, &self.cancel, &self.alarms, &self.signals] {
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
        bells.ring_for_work();
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RECONNECT.wait(failures.max(1)).max(RECONNECT.base)) => {}
        }
    }
}

async fn listen(database: &Database, bells: &Bells) -> Result<(), sqlx::Error> {
    // A pool of one, made anew for every connection, keeps the listener away from the pool that claims use.
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(5))
        .connect_with(database.options().clone())
        .await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen("stationmaster").await?;
    bells.ring_for_work();
    while let Some(notification) = listener.try_recv().await? {
        match notification.payload() {
            "cancel" => bells.cancel.ring(),
            "access" => bells.access.ring(),
            "alarms" => bells.alarms.ring(),
            "signals" => bells.signals.ring(),
            // What happened to dispatchers is for those who watch, not for those who work.
            "dispatchers" => {}
            _ => bells.queue.ring(),
        }
    }
    Ok(())
}
