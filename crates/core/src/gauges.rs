//! Gauges that tell how the database stands: asked for when somebody looks, so that they are true on every server and cost
//! nothing while nobody does. What cannot be found out is told as not known (NaN), never as what it was.

use std::time::{Duration, Instant};

use crate::db::{self, Database, Read as _, statement};
use crate::observe::{Connections, Metrics, Standing};

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
        let scrape = database.scrape();
        // Each for itself: what takes long, or is not ours to see, takes nothing else along.
        let (work, around) = tokio::join!(
            tokio::time::timeout(ANSWERS, look(&scrape)),
            tokio::time::timeout(ANSWERS, look_around(&scrape)),
        );
        let (queue, alarms, signals) = match work {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => ([f64::NAN; 4], [f64::NAN; 3], [f64::NAN; 2]),
        };
        metrics.depth(queue);
        metrics.alarms.standing(alarms);
        metrics.dispatchers.inbox(signals);
        let around = around.ok().and_then(Result::ok).unwrap_or_default();
        metrics.standing.stands(&around);
        metrics.standing.connected(&connections(database));
        metrics.standing.process();
        *measured_at = Some(Instant::now());
    }
}

/// How the servers, the dispatchers, the workspaces and the database itself stand.
#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit")]
async fn look_around(database: &Database) -> Result<Standing, db::Error> {
    let asked_at = jiff::Timestamp::now();
    let moment: jiff_sqlx::Timestamp = sqlx::query_scalar("select clock_timestamp()")
        .one(database)
        .await?;
    let answered_at = jiff::Timestamp::now();
    // It was looked at somewhere between the two.
    let middle = asked_at.as_second() as f64 / 2.0
        + f64::from(asked_at.subsec_nanosecond()) / 2e9
        + answered_at.as_second() as f64 / 2.0
        + f64::from(answered_at.subsec_nanosecond()) / 2e9;
    let moment = moment.to_jiff();
    let skew = middle - (moment.as_second() as f64 + f64::from(moment.subsec_nanosecond()) / 1e9);
    let (live, lost): (f64, f64) = sqlx::query_as(statement!("gauges/servers")).one(database).await?;
    let (owned, resting, vacant, unattended): (f64, f64, f64, f64) =
        sqlx::query_as(statement!("gauges/dispatchers"))
            .one(database)
            .await?;
    let (full, overdrawn): (f64, f64) = sqlx::query_as(statement!("gauges/workspaces"))
        .one(database)
        .await?;
    let strays: f64 = sqlx::query_scalar(statement!("gauges/strays"))
        .one(database)
        .await?;
    let slots = sqlx::query_as(statement!("gauges/slots")).all(database).await?;
    let (oldest, horizon, waits, wal, sessions, most): (f64, f64, f64, f64, f64, f64) =
        sqlx::query_as(statement!("gauges/database"))
            .one(database)
            .await?;
    Ok(Standing {
        skew,
        servers: [live, lost],
        dispatchers: [owned, resting, vacant, unattended],
        workspaces: [full, overdrawn],
        strays,
        slots,
        database: [oldest, horizon, waits, wal],
        sessions: [sessions, most],
        dead_rows: sqlx::query_as(statement!("gauges/dead_rows"))
            .all(database)
            .await?,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a pool is small")]
fn connections(database: &Database) -> Vec<Connections> {
    let pools = database.pools().into_iter().map(|(name, pool)| {
        let (size, idle) = (f64::from(pool.size()), pool.num_idle() as f64);
        Connections {
            pool: name,
            idle,
            in_use: (size - idle).max(0.0),
            limit: f64::from(pool.options().get_max_connections()),
        }
    });
    pools.collect()
}

async fn look(database: &Database) -> Result<([f64; 4], [f64; 3], [f64; 2]), db::Error> {
    let (pending, active, oldest, runnable): (f64, f64, Option<f64>, Option<f64>) =
        sqlx::query_as(statement!("gauges/queue")).one(database).await?;
    let (open, late, failing): (f64, f64, f64) =
        sqlx::query_as(statement!("gauges/alarms")).one(database).await?;
    let (waiting, oldest_signal): (f64, Option<f64>) =
        sqlx::query_as(statement!("gauges/signals")).one(database).await?;
    Ok((
        [
            pending,
            active,
            oldest.unwrap_or_default(),
            runnable.unwrap_or_default(),
        ],
        [open, late, failing],
        [waiting, oldest_signal.unwrap_or_default()],
    ))
}
