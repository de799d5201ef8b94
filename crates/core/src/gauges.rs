//! Gauges that tell how the database stands: asked for when somebody looks, so that they are true on every server and cost
//! nothing while nobody does. What cannot be found out is told as not known (NaN), never as what it was.

use std::time::{Duration, Instant};

use crate::db::{self, Database, Read as _, statement};
use crate::observe::Metrics;

/// How long what was found is believed.
const BELIEVED: Duration = Duration::from_secs(1);
/// How long it may take to find out, so that a scrape is answered in time.
const ANSWERS: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    measured_at: tokio::sync::Mutex<Option<Instant>>,
}

impl Gauges {
    /// Sets the gauges, unless that was done a moment ago.
    pub(crate) async fn measure(&self, database: &Database, metrics: &Metrics) {
        let mut measured_at = self.measured_at.lock().await;
        if measured_at.is_some_and(|at| at.elapsed() < BELIEVED) {
            return;
        }
        let measured = tokio::time::timeout(ANSWERS, look(&database.keepers())).await;
        let (queue, alarms, signals) = match measured {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => ([f64::NAN; 3], [f64::NAN; 3], [f64::NAN; 2]),
        };
        metrics.depth(queue);
        metrics.alarms.standing(alarms);
        metrics.dispatchers.inbox(signals);
        *measured_at = Some(Instant::now());
    }
}

async fn look(database: &Database) -> Result<([f64; 3], [f64; 3], [f64; 2]), db::Error> {
    let (pending, active, oldest): (f64, f64, Option<f64>) =
        sqlx::query_as(statement!("gauges/queue")).one(database).await?;
    let (open, late, failing): (f64, f64, f64) =
        sqlx::query_as(statement!("gauges/alarms")).one(database).await?;
    let (waiting, oldest_signal): (f64, Option<f64>) =
        sqlx::query_as(statement!("gauges/signals")).one(database).await?;
    Ok((
        [pending, active, oldest.unwrap_or_default()],
        [open, late, failing],
        [waiting, oldest_signal.unwrap_or_default()],
    ))
}
