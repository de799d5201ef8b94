//! What people see: items, executions, the history of each, and why a waiting item waits. Reads only.

use jiff::{SignedDuration, Timestamp};
pub use stationmaster_wire::{
    BacklogOfWorkflow, Execution, ExpectedStart, HeldWorkflow, ItemWait, Minute, Numbers, QueueItem,
    SlotHolder, Step, Waiting, Waits,
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

/// Items of a workspace that are looked at to tell what waits.
const LOOKED_AT: i64 = 10_000;

/// What waits in a workspace, by workflow, the one with the most first.
pub async fn backlog(
    database: &Database,
    workspace: WorkspaceId,
) -> Result<Vec<BacklogOfWorkflow>, db::Error> {
    sqlx::query_as(statement!("inspect/backlog"))
        .bind(workspace)
        .bind(LOOKED_AT)
        .persistent(false)
        .all(database)
        .await
}

/// The whole at a glance, as far as it is in scope.
pub async fn overview(database: &Database) -> Result<Numbers, db::Error> {
    let query = sqlx::query_as(statement!("inspect/overview"))
        .bind(database.among(None))
        .persistent(false);
    query.one(database).await
}

/// Workflows that are paused while items wait for them.
pub async fn held(database: &Database, limit: i64) -> Result<Vec<HeldWorkflow>, db::Error> {
    let query = sqlx::query_as(statement!("inspect/held"))
        .bind(database.among(None))
        .bind(limit)
        .persistent(false);
    query.all(database).await
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
    item_id: ItemId,
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
    /// Up to so many were counted in its line.
    counted: i64,
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

/// The facts about those of the items that wait.
async fn facts(database: &Database, items: &[ItemId]) -> Result<Vec<Facts>, db::Error> {
    let query = sqlx::query_as(statement!("inspect/waiting"))
        .bind(items)
        .bind(LOOKED_AT);
    query.all(database).await
}

/// Why several items wait, told in one look: those of them that do. The lines of all their workspaces together are counted no further than the
/// one line of one item.
pub async fn waits(database: &Database, items: &[ItemId]) -> Result<Waits, db::Error> {
    let facts = facts(database, items).await?;
    let counted = facts.first().map_or(LOOKED_AT, |facts| facts.counted);
    let told = |facts: Facts| ItemWait {
        id: facts.item_id.0,
        position: facts.in_line().then_some(facts.position),
        expected: facts.expected(),
        reasons: facts.reasons(),
    };
    Ok(Waits {
        items: facts.into_iter().map(told).collect(),
        counted,
    })
}

/// Why an item waits; `None` when it does not.
pub async fn waiting(database: &Database, item: ItemId) -> Result<Option<Wait>, db::Error> {
    let Some(facts) = facts(database, &[item]).await?.pop() else {
        return Ok(None);
    };
    let holders = sqlx::query_as(statement!("inspect/holders"))
        .bind(facts.workspace_id)
        .bind(HOLDERS);
    Ok(Some(Wait {
        holders: holders.all(database).await?,
        position: facts.in_line().then_some(facts.position),
        expected: facts.expected(),
        reasons: facts.reasons(),
    }))
}

impl Facts {
    /// Has its own time come?
    fn in_line(&self) -> bool {
        self.stage != Stage::Later
    }

    /// First what is the item's own, then what a person has stopped, then what the whole stands on, then its turn.
    fn reasons(self) -> Vec<Waiting> {
        let full = self.active >= self.max_concurrent;
        let in_line = self.in_line();
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
        let in_line = self.in_line();
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
                "{} before it, {slots} {}, and {mean:.1} s for each: the mean of the last {} executions of the workspace",
                ahead - 1,
                if slots == 1 { "slot" } else { "slots" },
                self.runs
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap_or_default()
    }

    /// The third in line of a workspace with one free slot of four; executions take ten seconds.
    fn facts() -> Facts {
        Facts {
            item_id: ItemId(Uuid::nil()),
            workspace_id: WorkspaceId(Uuid::nil()),
            stage: Stage::Ready,
            run_at: None,
            waits_for: None,
            last_error: None,
            workspace_paused: false,
            definition_paused: false,
            active: 3,
            max_concurrent: 4,
            position: 3,
            servers: 1,
            engine_up: true,
            holders: vec![Uuid::nil()],
            runs: 50,
            seconds: Some(10.0),
            counted: LOOKED_AT,
            asked_at: at(1_000),
        }
    }

    #[test]
    fn everything_in_the_way_is_told_in_the_order_in_which_it_falls_away() {
        let limit = Waiting::Limit {
            limit: 4,
            active: 4,
            holders: vec![Uuid::nil()],
            position: 3,
        };
        let all = Facts {
            stage: Stage::Later,
            run_at: Some(at(2_000)),
            waits_for: Some(WaitsFor::Schedule),
            workspace_paused: true,
            definition_paused: true,
            active: 4,
            servers: 0,
            ..facts()
        };
        let scheduled = Waiting::Scheduled {
            until: Some(at(2_000)),
        };
        let told = [
            scheduled,
            Waiting::WorkspacePaused,
            Waiting::DefinitionPaused,
            Waiting::NoServer,
            limit.clone(),
        ];
        assert_eq!(all.reasons(), told);
        let backing_off = Facts {
            stage: Stage::Later,
            run_at: Some(at(2_000)),
            last_error: Some("no".to_owned()),
            engine_up: false,
            position: 1,
            ..facts()
        };
        let told = [
            Waiting::BackingOff {
                until: Some(at(2_000)),
                error: Some("no".to_owned()),
            },
            Waiting::EngineDown,
        ];
        assert_eq!(backing_off.reasons(), told);
        let full = Facts { active: 5, ..facts() };
        let over = Waiting::Limit {
            limit: 4,
            active: 5,
            holders: vec![Uuid::nil()],
            position: 3,
        };
        assert_eq!(full.reasons(), [over, Waiting::Queued { position: 3 }]);
    }

    #[test]
    fn who_stands_in_line_is_told_its_place_and_the_first_waits_for_nothing_else() {
        assert_eq!(facts().reasons(), [Waiting::Queued { position: 3 }]);
        let first = Facts {
            position: 1,
            ..facts()
        };
        assert_eq!(first.reasons(), [Waiting::Queued { position: 1 }]);
    }

    fn expected(facts: &Facts) -> Option<i64> {
        facts.expected().map(|start| start.at.as_second())
    }

    #[test]
    fn a_start_is_expected_when_a_slot_is_free_or_comes_free_as_they_did_lately() {
        let first = Facts {
            position: 1,
            ..facts()
        };
        assert_eq!(expected(&first), Some(1_000), "a slot is free now");
        assert!(
            first
                .expected()
                .is_some_and(|start| start.how == "a slot is free for it")
        );
        // The third, and one slot is free: two slots must come free, of four that take ten seconds each.
        assert_eq!(expected(&facts()), Some(1_005));
        let full = Facts { active: 4, ..facts() };
        // Three of four: seven seconds and a half.
        assert_eq!(expected(&full), Some(1_007));
        let words = full.expected().map(|start| start.how).unwrap_or_default();
        assert!(
            words.starts_with("2 before it, 4 slots, and 10.0 s for each") && words.contains("last 50"),
            "{words}"
        );
        // More run than may, since the limit was lowered: no slot is free, and not less than none.
        let over = Facts { active: 9, ..facts() };
        assert_eq!(expected(&over), Some(1_007));
        let second = Facts {
            position: 2,
            active: 2,
            ..facts()
        };
        assert_eq!(expected(&second), Some(1_000), "two are free");
    }

    #[test]
    fn who_is_not_in_line_yet_begins_at_its_own_time_and_not_before() {
        let later = Facts {
            stage: Stage::Later,
            run_at: Some(at(5_000)),
            waits_for: Some(WaitsFor::Schedule),
            ..facts()
        };
        assert_eq!(expected(&later), Some(5_000));
        let words = later.expected().map(|start| start.how).unwrap_or_default();
        assert_eq!(words, "its own time; a slot is free now");
        let full = Facts { active: 4, ..later };
        assert_eq!(expected(&full), Some(5_000), "by then a slot came free");
        let soon = Facts {
            run_at: Some(at(1_001)),
            ..full
        };
        assert_eq!(expected(&soon), Some(1_002), "its time comes before a slot");
    }

    #[test]
    fn nothing_is_promised_while_something_stands_still_or_nothing_is_known() {
        let stands_still = [
            Facts {
                workspace_paused: true,
                ..facts()
            },
            Facts {
                definition_paused: true,
                ..facts()
            },
            Facts {
                engine_up: false,
                ..facts()
            },
            Facts {
                servers: 0,
                ..facts()
            },
            Facts {
                max_concurrent: 0,
                active: 0,
                ..facts()
            },
            Facts { runs: 0, ..facts() },
            Facts {
                seconds: None,
                ..facts()
            },
            Facts {
                seconds: Some(1e300),
                ..facts()
            },
        ];
        for facts in &stands_still {
            assert_eq!(expected(facts), None);
        }
        let one = Facts {
            max_concurrent: 1,
            active: 1,
            position: 1,
            ..facts()
        };
        assert_eq!(expected(&one), Some(1_010));
    }
}
