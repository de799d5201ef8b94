//! The planner: works out the next fire of alarms that were set by SQL, and of those that new time zone data may have moved.
//!
//! An expression or a civil time becomes an instant only here and in [`set`](super::set), by the zone data of this program,
//! never by the database's. What can never fire is failed at once, with the reason.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::AlarmsContext;
use super::lease::fail;
use super::terms::{Upcoming, Written, due};
use crate::columns::{MaybeAt, Span};
use crate::db::{self, Read as _, column, statement, within};
use crate::id::AlarmId;
use crate::task::{Next, Pass};

/// Between two looks when nobody rings; the claim loop looks every tick and rings.
const EVERY: Duration = Duration::from_secs(10);
const BATCH: i64 = 500;
/// Another server may be newer than this one, or come later.
const CHECK_ZONES_EVERY: Duration = Duration::from_mins(10);

/// See the module.
pub(crate) struct Planner {
    context: AlarmsContext,
    checked: Option<Instant>,
}

#[derive(sqlx::FromRow)]
struct Unplanned {
    alarm_id: AlarmId,
    reason: String,
    #[sqlx(try_from = "MaybeAt")]
    next_fire_at: Option<Timestamp>,
    #[sqlx(try_from = "MaybeAt")]
    follows_at: Option<Timestamp>,
    #[sqlx(try_from = "Span")]
    jitter: Duration,
    #[sqlx(flatten)]
    written: Written,
}

impl Planner {
    pub(crate) fn new(context: AlarmsContext) -> Self {
        Self {
            context,
            checked: None,
        }
    }

    async fn check_zones(&mut self) -> Result<(), db::Error> {
        if self.checked.is_some_and(|at| at.elapsed() < CHECK_ZONES_EVERY) {
            return Ok(());
        }
        let release = stationmaster_schedule::zone_data_version();
        let query = sqlx::query_scalar(statement!("alarms/zone_data")).bind(release);
        let again: i64 = query.one(&self.context.database).await?;
        if again > 0 {
            tracing::info!(
                alarms = again,
                release,
                "New time zone data: next fires are computed anew"
            );
        }
        self.checked = Some(Instant::now());
        Ok(())
    }

    /// Plans a batch. Answers how many there were.
    async fn plan(&self) -> Result<usize, db::Error> {
        let mut transaction = self.context.database.begin().await?;
        let rows: Vec<Unplanned> = sqlx::query_as(statement!("alarms/unplanned"))
            .bind(BATCH)
            .fetch_all(&mut *transaction)
            .await?;
        let (mut next_fires, mut broken, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        for row in &rows {
            match next_fire_of(row) {
                Ok(fire) => {
                    let before = row.next_fire_at;
                    if row.reason != "set" && before != Some(fire.next.at) {
                        let from = before.map_or_else(|| "none".to_owned(), |at| at.to_string());
                        moved.push((
                            row.alarm_id,
                            format!("from {from} to {}: {}", fire.next.at, row.reason),
                        ));
                    }
                    next_fires.push(fire);
                }
                Err(reason) => {
                    tracing::warn!(alarm = %row.alarm_id, error = reason, "Alarm can never fire");
                    broken.push((row.alarm_id, reason));
                }
            }
        }
        write_next_fires(&mut transaction, &next_fires).await?;
        if !broken.is_empty() {
            fail(&mut transaction, &broken).await?;
        }
        if !moved.is_empty() {
            let (alarms, details): (Vec<AlarmId>, Vec<String>) = moved.into_iter().unzip();
            sqlx::query(statement!("alarms/moved"))
                .bind(alarms)
                .bind(details)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(rows.len())
    }
}

impl Pass for Planner {
    fn name(&self) -> &'static str {
        "alarm planner"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        self.check_zones().await?;
        let planned = within(self.plan()).await?;
        if planned == 0 {
            return Ok(Next::After(EVERY));
        }
        self.context.bells.alarms.ring();
        Ok(Next::Now)
    }
}

/// The next fire of an alarm.
pub(super) struct NextFire {
    pub(super) alarm: AlarmId,
    pub(super) next: Upcoming,
    pub(super) jitter: Duration,
    /// The instant after which it was looked for.
    pub(super) follows: Timestamp,
}

fn next_fire_of(row: &Unplanned) -> Result<NextFire, String> {
    let follows = row.follows_at.unwrap_or(row.written.anchor_at);
    let next = row
        .written
        .read()?
        .first_after(follows)
        .ok_or("it never fires between its start and its end")?;
    Ok(NextFire {
        alarm: row.alarm_id,
        next,
        jitter: row.jitter,
        follows,
    })
}

/// Puts next fires where claims find them.
pub(super) async fn write_next_fires(
    transaction: &mut sqlx::PgConnection,
    next_fires: &[NextFire],
) -> Result<(), db::Error> {
    if next_fires.is_empty() {
        return Ok(());
    }
    let stamp = jiff_sqlx::Timestamp::from;
    sqlx::query(statement!("alarms/plan"))
        .bind(column(next_fires, |fire| fire.alarm))
        .bind(column(next_fires, |fire| stamp(fire.next.at)))
        .bind(column(next_fires, |fire| {
            stamp(due(fire.alarm, fire.next.at, fire.jitter))
        }))
        .bind(column(next_fires, |fire| stamp(fire.follows)))
        .bind(column(next_fires, |fire| fire.next.note.as_deref()))
        .execute(transaction)
        .await?;
    Ok(())
}
