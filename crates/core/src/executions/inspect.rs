//! What people see: items, executions, the history of each, and why a waiting item waits. Reads only.

use jiff::{SignedDuration, Timestamp};
pub use stationmaster_wire::{
    Execution, ExpectedStart, Minute, Numbers, QueueItem, SlotHolder, Step, Waiting,
};
use uuid::Uuid;

use super::browse::{Filter, Row, rows};
use super::{ItemStatus, Stage, WaitsFor};
use crate::columns::{At, MaybeAt};
use crate::db::{self, Database, Read as _, statement};
use crate::id::{ExecutionId, ItemId, WorkspaceId};

/// One item.
pub async fn item(database: &Database, id: ItemId) -> Result<Option<QueueItem>, db::Error> {
    let item: Option<QueueItem> = one(database, statement!("browse/items"), id.0).await?;
    Ok(item.filter(|item| database.scope().holds(WorkspaceId(item.workspace_id))))
}

/// One execution.
pub async fn execution(database: &Database, id: ExecutionId) -> Result<Option<Execution>, db::Error> {
    let execution: Option<Execution> = one(database, statement!("browse/executions"), id.0).await?;
    Ok(execution.filter(|execution| database.scope().holds(WorkspaceId(execution.workspace_id))))
}

async fn one<R: Row>(database: &Database, statement: &'static str, id: Uuid) -> Result<Option<R>, db::Error> {
    let mut session = database.session().await?;
    let row = rows(&mut session, statement, &[id], &Filter::<ItemStatus>::default()).await?;
    session.finish().await?;
    Ok(row.into_iter().next())
}

/// The whole at a glance, as far as it is in scope.
pub async fn overview(database: &Database) -> Result<Numbers, db::Error> {
    let query = sqlx::query_as(statement!("inspect/overview"))
        .bind(database.among(None))
        .persistent(false);
    query.one(database).await
}

/// Executions that are counted for a chart at most.
pub const COUNTED: i64 = 500_000;

/// What ended in each of the last minutes, oldest first; minutes in which nothing did are there too. When more than `counted` ended in
/// them, fewer minutes are told, and at least the one that is not over yet.
pub async fn minutes(database: &Database, minutes: i32, counted: i64) -> Result<Vec<Minute>, db::Error> {
    let mut minutes = minutes;
    loop {
        let counted = if minutes > 1 { counted } else { i64::MAX - 1 };
        let query = sqlx::query_as(statement!("inspect/minutes"))
            .bind(database.among(None))
            .bind(minutes)
            .bind(counted)
            .persistent(false);
        let told: Vec<Minute> = query.all(database).await?;
        if minutes <= 1 || !told.is_empty() {
            return Ok(told);
        }
        minutes = (minutes / 4).max(1);
    }
}

/// Is there a server that would carry out what is asked of an execution?
pub async fn is_served(database: &Database) -> Result<bool, db::Error> {
    let query = "select exists (select from stationmaster_internal.servers where lease_until > now())";
    sqlx::query_scalar(query).one(database).await
}

/// The life of an item, oldest first.
pub async fn history(database: &Database, item: ItemId) -> Result<Vec<Step>, db::Error> {
    let query = sqlx::query_as(statement!("inspect/history")).bind(item);
    query.all(database).await
}

#[derive(sqlx::FromRow)]
struct Facts {
    workspace_id: WorkspaceId,
    stage: Stage,
    #[sqlx(try_from = "MaybeAt")]
    run_at: Option<Timestamp>,
    waits_for: Option<WaitsFor>,
    last_error: Option<String>,
    workspace_paused: bool,
    definition_paused: bool,
    active: i32,
    max_concurrent: i32,
    position: i64,
    servers: i64,
    engine_up: bool,
    holders: Vec<Uuid>,
    /// How many of the last executions were asked how long they held their slot, and their mean.
    runs: i64,
    seconds: Option<f64>,
    #[sqlx(try_from = "At")]
    asked_at: Timestamp,
}

/// Why an item waits, told whole.
#[derive(Debug, Clone)]
pub struct Wait {
    /// Everything that stands in its way, in the order in which it falls away; never empty.
    pub reasons: Vec<Waiting>,
    /// Its place in line, when it stands there.
    pub position: Option<i64>,
    /// Who holds the slots of its workspace, the longest first.
    pub holders: Vec<SlotHolder>,
    /// When it is expected to start, where that can be told.
    pub expected: Option<ExpectedStart>,
}

/// Holders that are told.
const HOLDERS: i64 = 20;

/// Why an item waits; `None` when it does not.
pub async fn waiting(database: &Database, item: ItemId) -> Result<Option<Wait>, db::Error> {
    let query = sqlx::query_as(statement!("inspect/waiting")).bind(item);
    let Some(facts): Option<Facts> = query.maybe(database).await? else {
        return Ok(None);
    };
    let holders = sqlx::query_as(statement!("inspect/holders"))
        .bind(facts.workspace_id)
        .bind(HOLDERS);
    Ok(Some(Wait {
        holders: holders.all(database).await?,
        position: (facts.stage != Stage::Later).then_some(facts.position),
        expected: facts.expected(),
        reasons: facts.reasons(),
    }))
}

impl Facts {
    /// First what is the item's own, then what a person has stopped, then what the whole stands on, then its turn.
    fn reasons(self) -> Vec<Waiting> {
        let full = self.active >= self.max_concurrent;
        let in_line = self.stage != Stage::Later;
        let (until, position) = (self.run_at, self.position);
        let own = match self.waits_for {
            Some(WaitsFor::Schedule) => Waiting::Scheduled { until },
            _ => Waiting::BackingOff {
                until,
                error: self.last_error,
            },
        };
        let obstacles = [
            Some(own).filter(|_| !in_line),
            self.workspace_paused.then_some(Waiting::WorkspacePaused),
            self.definition_paused.then_some(Waiting::DefinitionPaused),
            (self.servers == 0).then_some(Waiting::NoServer),
            (self.servers > 0 && !self.engine_up).then_some(Waiting::EngineDown),
            full.then_some(Waiting::Limit {
                limit: self.max_concurrent,
                active: self.active,
                holders: self.holders,
                position,
            }),
            (in_line && position > 1).then_some(Waiting::Queued { position }),
        ];
        let mut reasons: Vec<Waiting> = obstacles.into_iter().flatten().collect();
        if reasons.is_empty() {
            reasons.push(Waiting::Queued { position });
        }
        reasons
    }

    /// What a person has stopped, or is away, comes back nobody knows when. Otherwise slots come free as they did lately: the
    /// last executions of the workspace tell how long each holds one.
    fn expected(&self) -> Option<ExpectedStart> {
        let stopped = self.workspace_paused || self.definition_paused || !self.engine_up || self.servers == 0;
        if stopped || self.max_concurrent < 1 {
            return None;
        }
        let in_line = self.stage != Stage::Later;
        let begins = self.run_at.filter(|_| !in_line).unwrap_or(self.asked_at);
        // Who is not in line yet finds one that nobody knows.
        let ahead = if in_line { self.position } else { 1 };
        let free = i64::from(self.max_concurrent - self.active);
        if ahead <= free {
            let how = if in_line {
                "a slot is free for it"
            } else {
                "its own time; a slot is free now"
            };
            return Some(ExpectedStart {
                at: begins,
                how: how.to_owned(),
            });
        }
        let mean = self.seconds.filter(|_| self.runs > 0)?;
        let slots = self.max_concurrent;
        #[expect(clippy::cast_precision_loss, reason = "counted up to ten thousand")]
        let seconds = mean * (ahead - free.max(0)) as f64 / f64::from(slots);
        // For so long nobody would believe it.
        let after = SignedDuration::try_from_secs_f64(seconds).ok()?;
        Some(ExpectedStart {
            at: begins.max(self.asked_at.checked_add(after).ok()?),
            how: format!(
                "{} before it, {slots} slots, and {mean:.1} s for each: the mean of the last {} executions of the workspace",
                ahead - 1,
                self.runs
            ),
        })
    }
}
