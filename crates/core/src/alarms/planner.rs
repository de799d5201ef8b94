//! The planner: works out the next fire of alarms that were set by SQL, and of those that new time zone data may have moved.
//!
//! An expression or a civil time becomes an instant only here and in [`set`](super::set), by the zone data of this program,
//! never by the database's. What can never fire is failed at once, with the reason.

use std::time::{Duration, Instant};

use stationmaster_schedule::DstPolicy;

use super::AlarmsContext;
use super::lease::fail;
use super::terms::{Upcoming, Written, due};
use crate::db::{self, statement, within};
use crate::id::AlarmId;
use crate::task::{Next, Pass};

/// Between two looks when nobody rings; the claim loop looks every tick and rings.
const EVERY: Duration = Duration::from_secs(10);
const BATCH: i64 = 500;
/// Another server may be newer than this one, or come later.
const CHECK_ZONES_EVERY: Duration = Duration::from_mins(10);

/// See the module.
pub(crate) struct Planner {
    shared: AlarmsContext,
    checked: Option<Instant>,
}

#[derive(sqlx::FromRow)]
struct Unplanned {
    alarm_id: AlarmId,
    reason: String,
    next_fire_at: Option<jiff_sqlx::Timestamp>,
    follows_at: Option<jiff_sqlx::Timestamp>,
    fire_at: Option<jiff_sqlx::Timestamp>,
    cron_expr: Option<String>,
    civil_at: Option<String>,
    timezone: Option<String>,
    #[sqlx(try_from = "crate::columns::Dst")]
    dst: DstPolicy,
    jitter: f64,
    start_at: Option<jiff_sqlx::Timestamp>,
    end_at: Option<jiff_sqlx::Timestamp>,
    created_at: jiff_sqlx::Timestamp,
}

impl Planner {
    pub(crate) fn new(shared: AlarmsContext) -> Self {
        Self {
            shared,
            checked: None,
        }
    }

    async fn check_zones(&mut self) -> Result<(), db::Error> {
        if self.checked.is_some_and(|at| at.elapsed() < CHECK_ZONES_EVERY) {
            return Ok(());
        }
        let release = stationmaster_schedule::zone_data_version();
        let query = sqlx::query_scalar(statement!("alarms/zone_data")).bind(release);
        let again: i64 = within(query.fetch_one(self.shared.database.pool())).await?;
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
        let mut transaction = self.shared.database.pool().begin().await?;
        let rows: Vec<Unplanned> = sqlx::query_as(statement!("alarms/unplanned"))
            .bind(BATCH)
            .fetch_all(&mut *transaction)
            .await?;
        let (mut plans, mut broken, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        for row in &rows {
            match plan_of(row) {
                Ok(plan) => {
                    let before = row.next_fire_at.map(jiff_sqlx::Timestamp::to_jiff);
                    if row.reason != "set" && before != Some(plan.next.at) {
                        let from = before.map_or_else(|| "none".to_owned(), |at| at.to_string());
                        moved.push((
                            row.alarm_id,
                            format!("from {from} to {}: {}", plan.next.at, row.reason),
                        ));
                    }
                    plans.push(plan);
                }
                Err(reason) => {
                    tracing::warn!(alarm = %row.alarm_id, error = reason, "Alarm can never fire");
                    broken.push((row.alarm_id, reason));
                }
            }
        }
        write_plans(&mut transaction, &plans).await?;
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
        self.shared.bells.alarms.ring();
        Ok(Next::Now)
    }
}

/// The next fire of an alarm.
pub(super) struct Plan {
    pub(super) alarm: AlarmId,
    pub(super) next: Upcoming,
    pub(super) jitter: Duration,
    /// The instant after which it was looked for.
    pub(super) follows: jiff::Timestamp,
}

fn plan_of(row: &Unplanned) -> Result<Plan, String> {
    let written = Written {
        fire_at: row.fire_at.map(jiff_sqlx::Timestamp::to_jiff),
        civil_at: row.civil_at.clone(),
        cron_expr: row.cron_expr.clone(),
        timezone: row.timezone.clone(),
        dst: row.dst,
        start_at: row.start_at.map(jiff_sqlx::Timestamp::to_jiff),
        end_at: row.end_at.map(jiff_sqlx::Timestamp::to_jiff),
        anchor_at: row.created_at.to_jiff(),
    };
    let follows = row.follows_at.unwrap_or(row.created_at).to_jiff();
    let next = written
        .read()?
        .first_after(follows)
        .ok_or("it never fires between its start and its end")?;
    Ok(Plan {
        alarm: row.alarm_id,
        next,
        jitter: Duration::try_from_secs_f64(row.jitter).unwrap_or_default(),
        follows,
    })
}

/// Puts plans where claims find them.
pub(super) async fn write_plans(
    transaction: &mut sqlx::PgConnection,
    plans: &[Plan],
) -> Result<(), db::Error> {
    if plans.is_empty() {
        return Ok(());
    }
    let stamp = jiff_sqlx::Timestamp::from;
    let dues = plans
        .iter()
        .map(|plan| stamp(due(plan.alarm, plan.next.at, plan.jitter)));
    sqlx::query(statement!("alarms/plan"))
        .bind(plans.iter().map(|plan| plan.alarm).collect::<Vec<_>>())
        .bind(plans.iter().map(|plan| stamp(plan.next.at)).collect::<Vec<_>>())
        .bind(dues.collect::<Vec<_>>())
        .bind(plans.iter().map(|plan| stamp(plan.follows)).collect::<Vec<_>>())
        .bind(
            plans
                .iter()
                .map(|plan| plan.next.note.as_deref())
                .collect::<Vec<_>>(),
        )
        .execute(transaction)
        .await?;
    Ok(())
}
