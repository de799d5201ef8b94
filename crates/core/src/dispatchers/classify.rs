//! What the supervisor makes of what it saw. Pure.
//!
//! Three things are compared: the row (who owns the dispatcher, under which epoch, or for how long nobody has), the heartbeats, and
//! the runs that the engine holds open. Only what belongs to an older epoch, or to nobody for long enough, is ever ended; a
//! dispatcher whose lease holds is left alone, however silent its heartbeat is. What has no row of ours is somebody else's.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use super::heartbeats::{Heartbeat, Unread};
use super::{DispatcherId, Epoch};
use crate::engine::dispatchers::OpenRun;
use crate::id::ServerId;

/// A dispatcher as its row tells.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Row {
    /// Its id.
    pub id: DispatcherId,
    /// Its project.
    pub project: String,
    /// Its task queue.
    pub task_queue: String,
    /// Its owner, now or last.
    pub owner: Option<ServerId>,
    /// Its epoch.
    pub epoch: Epoch,
    /// Does a lease hold?
    pub owned: bool,
    /// For how long none has.
    #[sqlx(try_from = "crate::columns::Span")]
    pub vacant_for: Duration,
    /// Does its run outlive its server? One on an engine of its own does.
    pub runs_outlive: bool,
    /// Does it rest until a signal comes?
    pub resting: bool,
}

impl Row {
    /// Is it known which runs are open?
    fn runs_known(&self, survey: &Survey) -> bool {
        !self.runs_outlive || survey.runs.is_some()
    }
}

/// Everything that was seen.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// The rows.
    pub rows: Vec<Row>,
    /// The heartbeats; `None`: the store did not answer.
    pub heartbeats: Option<Vec<Heartbeat>>,
    /// What lies beside the heartbeats and is none of ours.
    pub unread: Vec<Unread>,
    /// The open runs; `None`: the engine did not answer, or cannot tell of those that outlive their servers.
    pub runs: Option<Vec<OpenRun>>,
}

/// What a dispatcher, a run or a heartbeat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Owned, with a fresh heartbeat.
    Healthy,
    /// Owned, but its heartbeat is old or missing: the store was flushed, or the owner cannot reach it. Left alone.
    Silent,
    /// Nobody owns it, and not for long: a standby is about to take it.
    Vacant,
    /// Its owner is gone and nobody took over: it has to go.
    Stale,
    /// Left over from an older epoch: it has to go.
    Orphan,
    /// Looks like the dispatcher of an older deployment, with a random suffix: it goes when somebody says so.
    Legacy,
    /// Not ours: there is no row of that id, or it tells no epoch. Left alone.
    Foreign,
}

/// What has to be ended, removed or written, by its exact name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// End a run.
    Terminate {
        /// Its name on the engine.
        workflow_id: String,
        /// The run.
        run_id: String,
    },
    /// Remove a heartbeat.
    RemoveHeartbeat {
        /// Its epoch.
        epoch: Epoch,
        /// Who wrote it.
        server_id: ServerId,
    },
    /// Remove the heartbeat of an older deployment, while it says the same.
    RemoveLegacyHeartbeat {
        /// What it said when it was seen.
        #[serde(skip)]
        text: String,
    },
    /// Say that nobody owns the dispatcher.
    Release,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Which dispatcher, or what looks like one.
    pub dispatcher_id: DispatcherId,
    /// What it is.
    pub class: Class,
    /// Why, in words.
    pub reason: String,
    /// The epoch of the row when it was seen; acts are conditional on it.
    pub epoch: Option<Epoch>,
    /// Whether a lease held when it was seen; acts are conditional on it.
    pub owned: bool,
    /// What to do about it: runs before heartbeats before the row. Empty: nothing.
    #[serde(flatten)]
    pub act: Option<Act>,
}

/// Whether what older deployments left behind is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Legacy {
    /// Found and shown.
    #[default]
    Leave,
    /// Removed.
    Remove,
}

/// What was seen, by the dispatcher that it is of.
struct Index<'a> {
    survey: &'a Survey,
    runs: HashMap<&'a str, Vec<&'a OpenRun>>,
    heartbeats: HashMap<&'a str, Vec<&'a Heartbeat>>,
}

impl<'a> Index<'a> {
    fn of(survey: &'a Survey) -> Self {
        let (mut runs, mut heartbeats) = (HashMap::new(), HashMap::new());
        for run in survey.runs.iter().flatten() {
            let of_one: &mut Vec<_> = runs.entry(run.workflow_id.as_str()).or_default();
            of_one.push(run);
        }
        for beat in survey.heartbeats.iter().flatten() {
            let of_one: &mut Vec<_> = heartbeats.entry(beat.dispatcher_id.0.as_str()).or_default();
            of_one.push(beat);
        }
        Self {
            survey,
            runs,
            heartbeats,
        }
    }

    fn runs_of(&self, row: &Row) -> impl Iterator<Item = &'a OpenRun> {
        self.runs.get(row.id.0.as_str()).into_iter().flatten().copied()
    }

    fn heartbeats_of(&self, row: &Row) -> impl Iterator<Item = &'a Heartbeat> {
        self.heartbeats
            .get(row.id.0.as_str())
            .into_iter()
            .flatten()
            .copied()
    }
}

/// Judges everything that was seen, in the order in which it has to be acted on.
#[must_use]
pub fn classify(survey: &Survey, stale_after: Duration, legacy: Legacy) -> Vec<Finding> {
    let index = Index::of(survey);
    let mut findings = Vec::new();
    for row in &survey.rows {
        findings.push(of_row(row, &index, stale_after));
        let runs = index.runs_of(row);
        findings.extend(runs.filter_map(|run| of_run(row, run, stale_after)));
        let heartbeats = index.heartbeats_of(row);
        findings.extend(heartbeats.filter_map(|beat| of_heartbeat(row, beat, survey, stale_after)));
        findings.extend(release(row, &index, stale_after));
    }
    let known: HashSet<&str> = survey.rows.iter().map(|row| row.id.0.as_str()).collect();
    let heads: HashMap<String, &Row> = survey
        .rows
        .iter()
        .map(|row| (DispatcherId::legacy_head(&row.project, &row.task_queue), row))
        .collect();
    let runs = survey.runs.iter().flatten();
    findings.extend(
        runs.filter(|run| !known.contains(run.workflow_id.as_str()))
            .map(|run| of_unknown(run, &heads, legacy)),
    );
    let unread = survey.unread.iter();
    findings.extend(unread.filter_map(|found| of_unread(found, survey, &heads, legacy)));
    let heartbeats = survey.heartbeats.iter().flatten();
    findings.extend(
        heartbeats
            .filter(|beat| !known.contains(beat.dispatcher_id.0.as_str()))
            .map(|beat| {
                let reason = "a heartbeat of a dispatcher that this database does not know";
                stranger(&beat.dispatcher_id.0, Class::Foreign, reason, None)
            }),
    );
    findings
}

fn finding(row: &Row, class: Class, reason: impl Into<String>, act: Option<Act>) -> Finding {
    Finding {
        epoch: Some(row.epoch),
        owned: row.owned,
        ..stranger(&row.id.0, class, reason, act)
    }
}

/// Of what has no row of ours.
fn stranger(id: &str, class: Class, reason: impl Into<String>, act: Option<Act>) -> Finding {
    Finding {
        dispatcher_id: DispatcherId(id.to_owned()),
        class,
        reason: reason.into(),
        epoch: None,
        owned: false,
        act,
    }
}

fn terminate(run: &OpenRun) -> Act {
    Act::Terminate {
        workflow_id: run.workflow_id.clone(),
        run_id: run.run_id.clone(),
    }
}

/// Nobody has owned it for so long that nobody will be disturbed.
fn abandoned(row: &Row, stale_after: Duration) -> bool {
    !row.owned && row.vacant_for >= stale_after
}

fn of_row(row: &Row, index: &Index<'_>, stale_after: Duration) -> Finding {
    if !row.owned {
        let class = if abandoned(row, stale_after) && row.owner.is_some() {
            Class::Stale
        } else {
            Class::Vacant
        };
        let reason = match row.owner {
            _ if row.resting => "it rests until a signal comes".to_owned(),
            _ if row.epoch.0 == 0 => "it never had an owner".to_owned(),
            Some(owner) => format!(
                "its owner {owner} has had no lease for {} s",
                row.vacant_for.as_secs()
            ),
            None => "it has no owner".to_owned(),
        };
        return finding(row, class, reason, None);
    }
    if index.survey.heartbeats.is_none() {
        let words = "heartbeats cannot be read; its lease holds";
        return finding(row, Class::Silent, words, None);
    }
    let beat = index.heartbeats_of(row).find(|beat| beat.epoch == row.epoch);
    match beat.map(|beat| beat.age) {
        Some(age) if age <= stale_after => {
            let words = "its lease holds and its heartbeat is fresh";
            finding(row, Class::Healthy, words, None)
        }
        Some(age) => {
            let words = format!("its lease holds, but its heartbeat is {} s old", age.as_secs());
            finding(row, Class::Silent, words, None)
        }
        None => {
            let words = "its lease holds, but it has no heartbeat";
            finding(row, Class::Silent, words, None)
        }
    }
}

fn of_run(row: &Row, run: &OpenRun, stale_after: Duration) -> Option<Finding> {
    let Some(epoch) = run.epoch else {
        let words = format!("the run {} does not tell an epoch: it is not ours", run.run_id);
        return Some(finding(row, Class::Foreign, words, None));
    };
    if epoch < row.epoch {
        let words = format!(
            "the run {} is of epoch {}, and the dispatcher is at {}",
            run.run_id, epoch.0, row.epoch.0
        );
        return Some(finding(row, Class::Orphan, words, Some(terminate(run))));
    }
    if epoch > row.epoch {
        let words = format!(
            "the run {} is of epoch {}, ahead of our {}: it is not ours",
            run.run_id, epoch.0, row.epoch.0
        );
        return Some(finding(row, Class::Foreign, words, None));
    }
    abandoned(row, stale_after).then(|| {
        let words = format!(
            "nobody has owned the run {} for {} s",
            run.run_id,
            row.vacant_for.as_secs()
        );
        finding(row, Class::Stale, words, Some(terminate(run)))
    })
}

fn of_heartbeat(row: &Row, beat: &Heartbeat, survey: &Survey, stale_after: Duration) -> Option<Finding> {
    let old = beat.age > stale_after;
    let left_over = beat.epoch < row.epoch || (beat.epoch == row.epoch && abandoned(row, stale_after));
    // Runs first: while it is not known that none is left, the heartbeat stays as the trace of it.
    let runs_known = row.runs_known(survey);
    let class = if beat.epoch < row.epoch {
        Class::Orphan
    } else {
        Class::Stale
    };
    (old && left_over && runs_known).then(|| {
        let words = format!(
            "the heartbeat of epoch {} by {} is {} s old",
            beat.epoch.0,
            beat.server_id,
            beat.age.as_secs()
        );
        let act = Act::RemoveHeartbeat {
            epoch: beat.epoch,
            server_id: beat.server_id,
        };
        finding(row, class, words, Some(act))
    })
}

/// Once nothing is left of its last owner, the row says so too.
fn release(row: &Row, index: &Index<'_>, stale_after: Duration) -> Option<Finding> {
    let owner = row.owner.filter(|_| abandoned(row, stale_after))?;
    let nothing_left = index.survey.heartbeats.is_some()
        && index.heartbeats_of(row).all(|beat| beat.age > stale_after)
        && row.runs_known(index.survey);
    nothing_left.then(|| {
        let words = format!("nothing is left of its owner {owner}");
        finding(row, Class::Stale, words, Some(Act::Release))
    })
}

fn of_unknown(run: &OpenRun, heads: &HashMap<String, &Row>, legacy: Legacy) -> Finding {
    let like = DispatcherId::legacy_heads(&run.workflow_id).find_map(|head| heads.get(head));
    let Some(row) = like.filter(|_| run.epoch.is_none()) else {
        let reason = "this database does not know such a dispatcher";
        return stranger(&run.workflow_id, Class::Foreign, reason, None);
    };
    let reason = format!(
        "an older deployment's dispatcher of project {:?}, task queue {:?}",
        row.project, row.task_queue
    );
    let act = (legacy == Legacy::Remove).then(|| terminate(run));
    stranger(&run.workflow_id, Class::Legacy, reason, act)
}

/// What lies in the place of a heartbeat under a name that an older deployment gave. Everything else that is not ours is nobody's
/// business here.
fn of_unread(
    found: &Unread,
    survey: &Survey,
    heads: &HashMap<String, &Row>,
    legacy: Legacy,
) -> Option<Finding> {
    let id = found.dispatcher_id.0.as_str();
    let row = DispatcherId::legacy_heads(id).find_map(|head| heads.get(head))?;
    let (project, task_queue) = (&row.project, &row.task_queue);
    let whose = format!(
        "the heartbeat of an older deployment's dispatcher of project {project:?}, task queue {task_queue:?}"
    );
    if !row.runs_known(survey) {
        let words = format!("{whose}; whether its run is over is not known");
        return Some(stranger(id, Class::Legacy, words, None));
    }
    let act = (legacy == Legacy::Remove).then(|| Act::RemoveLegacyHeartbeat {
        text: found.text.clone(),
    });
    Some(stranger(id, Class::Legacy, whose, act))
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
