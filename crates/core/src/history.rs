//! What happened in each minute, kept for charts long after the rows that tell it are pruned.
//!
//! Nothing is counted while it happens: once a minute one server counts, for all, what is on record about the minutes that are over, by the
//! times in the rows. So a server that is killed takes no figure along, what SQL enqueues is counted too, and minutes in which no server was
//! there are made up for. A transaction that commits after its minute was counted is seen by the next counts, which look at the last few
//! minutes again unless there is very much in them. Of hundreds of thousands in a minute a part is counted, and stands for the rest.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stationmaster_wire::{HistoryChart, HistoryPoint, Spread};

use crate::columns::At;
use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::duty;
use crate::id::{DefinitionId, ServerId, WorkspaceId};
use crate::presence::Presence;
use crate::task::{Next, Pass};

const DUTY: &str = "history";
/// Shorter than the lease of a duty.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// How far back a count looks again.
const AGAIN: SignedDuration = SignedDuration::from_mins(5);
/// Unless so much happened that counting it again would be felt.
const MUCH: i64 = 20_000;
/// Beyond this, only one in so many is counted.
const COUNTED_EACH: i64 = 200_000;
/// More is not told apart when it is asked how much there is.
const MOST: i64 = 10_000_000;
/// Minutes counted at once: one while much happens, more where it turns out that little did.
const LONGEST_SPAN: i32 = 60;
/// Starts of a minute that are asked how long they waited.
const MEASURED: i64 = 5_000;
/// Workspaces and workflows that are kept of a minute.
const KEPT: i64 = 100;
/// Minutes forgotten by one statement.
const BATCH: i64 = 5_000;
/// The bounds of lengths of time, in seconds. `sql/history/read.sql` adds up one more than these.
const BOUNDS: [f64; 16] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0,
];

/// Counts the minutes that are over. One server at a time, as a duty.
pub(crate) struct Historian {
    database: Database,
    presence: Presence,
    bite: Bite,
}

impl Historian {
    pub(crate) fn new(database: Database, presence: Presence) -> Self {
        Self {
            database,
            presence,
            bite: Bite { span: 1, much: false },
        }
    }
}

/// How much is counted at once.
struct Bite {
    /// Minutes.
    span: i32,
    /// Very much happened, so that what was counted is not counted again.
    much: bool,
}

impl Bite {
    /// Chooses the next by how much there was in the last.
    fn after(moved: i64, last: &Self) -> Self {
        let much = moved > MUCH;
        Self {
            span: if much {
                1
            } else {
                (last.span * 4).min(LONGEST_SPAN)
            },
            much,
        }
    }

    /// The next after one that took too long; `None`: nothing is smaller.
    fn smaller(&self) -> Option<Self> {
        (self.span > 1 || !self.much).then_some(Self { span: 1, much: true })
    }
}

/// What is to be counted next.
#[derive(sqlx::FromRow)]
struct Span {
    #[sqlx(try_from = "At")]
    since: Timestamp,
    #[sqlx(try_from = "At")]
    until: Timestamp,
    is_newest: bool,
    rest: f64,
}

impl Pass for Historian {
    fn name(&self) -> &'static str {
        "history"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let Some(held) = duty::hold(&self.database, &self.presence, DUTY).await? else {
            return Ok(Next::After(LONGEST_REST));
        };
        let span: Span = sqlx::query_as(statement!("history/span"))
            .bind(held.position.map(jiff_sqlx::Timestamp::from))
            .bind(self.bite.span)
            .one(&self.database)
            .await?;
        if span.since < span.until {
            let again = if self.bite.much {
                SignedDuration::ZERO
            } else {
                AGAIN
            };
            match count(&self.database, span.since - again, span.until, span.is_newest).await {
                Ok(moved) => self.bite = Bite::after(moved, &self.bite),
                Err(db::Error::Timeout(_)) => {
                    if let Some(smaller) = self.bite.smaller() {
                        self.bite = smaller;
                        return Ok(Next::Now);
                    }
                    tracing::warn!(minute = %span.since, "A minute could not be counted in time; charts show a gap there");
                }
                Err(error) => return Err(error),
            }
            duty::advance(&self.database, DUTY, held, span.until).await?;
        }
        if !span.is_newest {
            return Ok(Next::Now);
        }
        let rest = Duration::try_from_secs_f64(span.rest).unwrap_or(LONGEST_REST);
        Ok(Next::After(rest.min(LONGEST_REST)))
    }
}

/// Counts the minutes from one to another; what runs and waits now is counted to the last of them when that has only just ended. Answers
/// how much happened in them.
pub async fn count(
    database: &Database,
    from: Timestamp,
    to: Timestamp,
    just_ended: bool,
) -> Result<i64, db::Error> {
    let (since, until) = (jiff_sqlx::Timestamp::from(from), jiff_sqlx::Timestamp::from(to));
    let amount: i64 = sqlx::query_scalar(statement!("history/amount"))
        .bind(since)
        .bind(until)
        .bind(MOST)
        .one(database)
        .await?;
    let last = just_ended.then(|| jiff_sqlx::Timestamp::from(to - SignedDuration::from_mins(1)));
    let servers = sqlx::query(statement!("history/count_servers"))
        .bind(since)
        .bind(until)
        .bind(last)
        .bind(&BOUNDS[..])
        .bind(one_in(amount));
    servers.run(database).await?;
    sqlx::query_scalar(statement!("history/count"))
        .bind(since)
        .bind(until)
        .bind(last)
        .bind(MEASURED)
        .bind(KEPT)
        .bind(&BOUNDS[..])
        .bind(one_in(amount))
        .one(database)
        .await
}

/// Of so much, one in how many is counted: a power of two.
fn one_in(amount: i64) -> i32 {
    let wanted = u32::try_from(amount / COUNTED_EACH).unwrap_or_default();
    i32::try_from(wanted.next_power_of_two()).unwrap_or(1)
}

/// Forgets minutes that are older than this, some at a time. Answers how many rows.
pub async fn prune(database: &Database, retention: Duration) -> Result<u64, db::Error> {
    let mut forgotten = 0;
    for statement in [statement!("history/prune"), statement!("history/prune_servers")] {
        let query = sqlx::query(statement).bind(retention.as_secs_f64()).bind(BATCH);
        forgotten += query.run(&database.own()).await?;
    }
    Ok(forgotten)
}

/// Of what, and how finely.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// From when.
    pub from: Timestamp,
    /// Until when; some steps later.
    pub to: Timestamp,
    /// How much time one point stands for; whole minutes.
    pub step: SignedDuration,
    /// Only of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Only of this workflow.
    pub workflow: Option<DefinitionId>,
    /// Only what this server had in hand.
    pub server: Option<ServerId>,
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(try_from = "At")]
    at: Timestamp,
    enqueued: i64,
    started: i64,
    completed: i64,
    failed: i64,
    cancelled: i64,
    terminated: i64,
    timed_out: i64,
    alarms_fired: i64,
    alarms_failed: i64,
    alarms_late: i64,
    waiting: Option<i64>,
    active: Option<i64>,
    wait_seconds: f64,
    wait_longest: f64,
    waits: Vec<i64>,
    run_seconds: f64,
    run_longest: f64,
    runs: Vec<i64>,
}

impl From<Row> for HistoryPoint {
    fn from(row: Row) -> Self {
        Self {
            at: row.at,
            enqueued: row.enqueued,
            started: row.started,
            completed: row.completed,
            failed: row.failed,
            cancelled: row.cancelled,
            terminated: row.terminated,
            timed_out: row.timed_out,
            waiting: row.waiting,
            active: row.active,
            wait: spread(&row.waits, row.wait_seconds, row.wait_longest),
            run: spread(&row.runs, row.run_seconds, row.run_longest),
            alarms_fired: row.alarms_fired,
            alarms_failed: row.alarms_failed,
            alarms_late: row.alarms_late,
        }
    }
}

/// The history, as far as it is in scope.
pub async fn chart(database: &Database, chart: Chart) -> Result<HistoryChart, db::Error> {
    let mut session = database.session().await?;
    let rows = match chart.server {
        None => sqlx::query_as::<_, Row>(statement!("history/read"))
            .bind(database.among(chart.workspace))
            .bind(chart.workflow),
        Some(server) => sqlx::query_as::<_, Row>(statement!("history/read_server")).bind(server),
    };
    let rows = rows
        .bind(jiff_sqlx::Timestamp::from(chart.from))
        .bind(jiff_sqlx::Timestamp::from(chart.to))
        .bind(chart.step.as_secs())
        .persistent(false);
    let rows = db::within(rows.fetch_all(&mut *session)).await?;
    let counted =
        sqlx::query_scalar::<_, Option<jiff_sqlx::Timestamp>>(statement!("history/counted")).bind(DUTY);
    let counted = db::within(counted.fetch_optional(&mut *session)).await?.flatten();
    session.finish().await?;
    let mut rows = rows.into_iter().map(HistoryPoint::from).peekable();
    let mut points = Vec::new();
    let mut at = chart.from;
    while at < chart.to {
        let empty = HistoryPoint {
            at,
            ..HistoryPoint::default()
        };
        points.push(rows.next_if(|point| point.at == at).unwrap_or(empty));
        at += chart.step;
    }
    Ok(HistoryChart {
        from: chart.from,
        to: chart.to,
        step_seconds: chart.step.as_secs(),
        counted_until: counted.map(jiff_sqlx::Timestamp::to_jiff),
        points,
    })
}

fn spread(buckets: &[i64], seconds: f64, longest: f64) -> Option<Spread> {
    let count: i64 = buckets.iter().sum();
    (count > 0).then(|| Spread {
        count,
        mean: seconds / approximate(count),
        p50: quantile(buckets, count, longest, 0.50),
        p95: quantile(buckets, count, longest, 0.95),
        longest,
    })
}

/// Below which a share of them lies: within a bucket they are taken to lie evenly.
fn quantile(buckets: &[i64], count: i64, longest: f64, share: f64) -> f64 {
    let wanted = approximate(count) * share;
    let mut below = 0.0;
    for (place, bucket) in buckets.iter().enumerate() {
        let within = approximate(*bucket);
        if within > 0.0 && below + within >= wanted {
            let from = place.checked_sub(1).map_or(0.0, |before| BOUNDS[before]);
            let to = BOUNDS.get(place).copied().unwrap_or(longest).min(longest);
            return from + (to - from).max(0.0) * (wanted - below) / within;
        }
        below += within;
    }
    longest
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a chart does not show the sixteenth digit"
)]
fn approximate(count: i64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_tried_by_a_minute_alone_before_that_is_given_up() {
        let first = Bite { span: 1, much: false };
        let many = Bite::after(0, &Bite::after(0, &first));
        assert_eq!((many.span, many.much), (16, false));
        let one = many.smaller().unwrap();
        assert_eq!((one.span, one.much), (1, true));
        assert!(one.smaller().is_none());
        assert!(first.smaller().is_some(), "it counts some minutes again");
        assert_eq!(Bite::after(MUCH + 1, &many).span, 1);
    }

    #[test]
    fn of_little_each_is_counted_and_of_much_a_part() {
        assert_eq!([0, 1, COUNTED_EACH].map(one_in), [1, 1, 1]);
        assert_eq!([2 * COUNTED_EACH, 3 * COUNTED_EACH, MOST].map(one_in), [2, 4, 64]);
    }

    #[test]
    fn quantiles_lie_within_their_bucket_and_never_above_the_longest() {
        let mut buckets = vec![0; BOUNDS.len() + 1];
        assert_eq!(spread(&buckets, 0.0, 0.0), None);
        buckets[6] = 90;
        buckets[9] = 10;
        let told = spread(&buckets, 130.0, 8.0).unwrap();
        assert!((0.5..=1.0).contains(&told.p50), "{told:?}");
        assert!((5.0..=8.0).contains(&told.p95), "{told:?}");
        assert!((told.mean - 1.3).abs() < 1e-9, "{told:?}");
        let last = vec![0; BOUNDS.len()].into_iter().chain([1]).collect::<Vec<_>>();
        let told = spread(&last, 20_000.0, 20_000.0).unwrap();
        assert!((14_400.0..=20_000.0).contains(&told.p95), "{told:?}");
    }
}
