//! Claim: the loop that looks for what is due, leases it, and says when to look again. The transaction itself is
//! [`lease`](super::lease).
//!
//! Between claims the server sleeps until the next instant is due, a notification comes, or the tick is over; while busy it looks
//! again and again, so that nobody needs to ring ([`attention`](crate::attention)). No timer decides: what is due the database says.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::lease::{Content, Leased, lease};
use super::{AlarmsContext, Origin};
use crate::attention::Terms;
use crate::db::{self, Read as _, statement, within};
use crate::id::{AlarmId, ServerId, Token};
use crate::lane::Claimed;
use crate::task::Next;

/// After work there is often more.
pub(super) const ATTENTION: Terms = Terms {
    holds: Duration::from_secs(1),
    look_again: Duration::from_millis(20),
};
/// So many ticks lie between two looks while no alarm has a time to come: whoever sets one rings.
const NOTHING_DUE: u32 = 3;
/// Open rows whose time came longer ago than this were claimed then, and are dead; a full look finds what was not.
const LONG_AGO: f64 = 60.0;

/// An occurrence that this server has leased, and what its wake says.
pub(crate) struct Claim {
    pub(crate) alarm_id: AlarmId,
    pub(crate) scheduled_for: Timestamp,
    pub(crate) token: Token,
    pub(crate) holder: ServerId,
    /// By our own clock, counted from before the claim was made.
    pub(crate) valid_until: Instant,
    /// When it was made, by our own clock.
    pub(crate) claimed: Instant,
    /// How late it was then, by the database's clock.
    pub(crate) late: f64,
    pub(crate) attempts: u32,
    pub(crate) recoveries: u32,
    pub(crate) max_failures: u32,
    pub(crate) origin: Origin,
    pub(crate) content: Content,
    /// The span of the round that claimed it.
    pub(crate) round: tracing::Span,
}

impl Claim {
    /// Its nominal instant, as statements take it.
    pub(super) fn scheduled_for(&self) -> jiff_sqlx::Timestamp {
        self.scheduled_for.into()
    }
}

#[derive(Default)]
struct Memory {
    next_due: Option<Instant>,
    /// By the database's clock, at the last look, in seconds since 1970.
    database_now: f64,
    /// The last claim was full: there is more, no need to look.
    more: bool,
}

/// Makes claims.
pub(crate) struct Claimer {
    context: AlarmsContext,
    memory: Mutex<Memory>,
}

impl Claimer {
    pub(crate) fn new(context: AlarmsContext) -> Self {
        Self {
            context,
            memory: Mutex::default(),
        }
    }

    /// Was the last claim full, so that there is more?
    pub(crate) fn has_backlog(&self) -> bool {
        self.memory.lock().more
    }

    /// Claims at most about `room` occurrences.
    #[tracing::instrument(name = "step:claim_due", level = "debug", skip_all)]
    pub(crate) async fn claim(
        &self,
        room: usize,
        round: &tracing::Span,
    ) -> Result<Claimed<Claim>, db::Error> {
        let began = Instant::now();
        let Some(holder) = self.context.presence.holder() else {
            return Ok(Claimed::nothing(Duration::from_millis(50)));
        };
        if self.context.presence.is_draining() {
            return Ok(Claimed::nothing(self.context.settings.tick));
        }
        if !self.memory.lock().more && !self.look().await? {
            let next_due = self.memory.lock().next_due;
            let mut tick = self.context.settings.tick;
            if next_due.is_none() {
                tick *= NOTHING_DUE;
            }
            return Ok(Claimed::nothing(self.context.attention.sleep(tick, next_due)));
        }
        let behind = self.memory.lock().database_now - LONG_AGO;
        let lease = lease(&self.context, holder, room, behind);
        let (leased, more) = within(lease).await?;
        self.memory.lock().more = more;
        if leased.is_empty() && !more {
            return Ok(Claimed::nothing(ATTENTION.look_again));
        }
        let claims: Vec<Claim> = leased
            .into_iter()
            .map(|row| self.claim_of(row, holder, began, round))
            .collect();
        self.context.attention.worked();
        self.context.attention.attend(&self.context.database, None).await;
        self.context.metrics.alarms.claimed(claims.len(), began.elapsed());
        tracing::debug!(occurrences = claims.len(), "Firing {} occurrences", claims.len());
        Ok(Claimed {
            claims,
            next: Next::Now,
        })
    }

    fn claim_of(&self, row: Leased, holder: ServerId, began: Instant, round: &tracing::Span) -> Claim {
        let settings = &self.context.settings;
        Claim {
            alarm_id: row.alarm_id,
            scheduled_for: row.scheduled_for,
            token: row.token,
            holder,
            valid_until: began + settings.lease,
            claimed: Instant::now(),
            late: row.late,
            attempts: u32::try_from(row.attempts).unwrap_or_default(),
            recoveries: u32::try_from(row.recoveries).unwrap_or_default(),
            max_failures: row
                .max_failures
                .and_then(|most| u32::try_from(most).ok())
                .unwrap_or(settings.max_failures),
            origin: row.origin,
            content: row.content,
            round: round.clone(),
        }
    }

    /// A look that writes nothing, so that idle alarms cost one read. Is there anything to claim?
    async fn look(&self) -> Result<bool, db::Error> {
        let now = Instant::now();
        let (due_from, ready_from) = (
            self.context.due_from.lock().from(),
            self.context.ready_from.lock().from(),
        );
        let (unplanned, next_due_in, database_now): (bool, Option<f64>, f64) =
            sqlx::query_as(statement!("alarms/look"))
                .bind(due_from)
                .bind(ready_from)
                .one(&self.context.database)
                .await?;
        if unplanned {
            self.context.bells.planner.ring();
        }
        let mut memory = self.memory.lock();
        memory.database_now = database_now;
        memory.next_due =
            next_due_in.map(|seconds| now + Duration::try_from_secs_f64(seconds).unwrap_or_default());
        Ok(next_due_in.is_some_and(|seconds| seconds <= 0.0))
    }
}
