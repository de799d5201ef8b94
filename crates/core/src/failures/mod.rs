//! Failures: what needs a person, of whatever lane, grouped by what it has in common; and what a person does about it.
//!
//! ```text
//! executions_finished --+                                +--> retry: back into the queue, the inbox, or due again
//! occurrences_finished -+-- triggers --> [failures] -----+--> set aside: it stays on record and asks for nobody
//! signals_settled ------+                 by group       +--> cancel: what waits of the same workflow does not follow
//! ```
//!
//! Rows come and go by triggers (`schema/failures`): whoever ends, retries or prunes something need not think of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use stationmaster_wire::{BulkAnswer, BulkCancel, CancellableStatus};
pub use stationmaster_wire::{BulkFailures, Failure, FailureGroup, FailureKind};
use uuid::Uuid;

use crate::alarms::{self, backfill};
use crate::bulk::{self, Pages, count, walk};
use crate::columns::MaybeAt;
use crate::db::{self, Database, Read as _, statement};
use crate::executions::operate;
use crate::id::{AlarmId, DefinitionId, ItemId, WorkspaceId};
use crate::pages::like;
use crate::signals::replay;

/// Groups that are looked at for a list.
const GROUPS: i64 = 5_000;
/// Failures of a group that are counted for a list; one more says that there are more.
const COUNTED: i64 = 10_001;
/// Hours of which a list tells how many failed in each.
const HOURS: i32 = 24;
/// Digits of a whole id.
const DIGITS: u32 = 15;
/// Digits of an id that are enough to ask by.
const FEWEST_DIGITS: usize = 4;

/// Why something was not done about failures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// That cannot be the id of a group.
    #[error("a group's id is {FEWEST_DIGITS} to {DIGITS} hexadecimal digits, as lists show it")]
    NoId,
    /// No group has this id, or what it held has been retried, or is forgotten.
    #[error("there is no group of failures {0}")]
    NotFound(String),
    /// Several begin like it.
    #[error("several groups begin with {0}: give more digits")]
    Ambiguous(String),
    /// It cannot be done to what is in the group.
    #[error("{0}")]
    WrongKind(String),
    /// The walk could not begin.
    #[error(transparent)]
    Bulk(#[from] bulk::Error),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// A group, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupId(i64);

impl std::fmt::Display for GroupId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:015x}", self.0)
    }
}

/// The groups whose ids begin with these digits, from the first to the last.
fn range(text: &str) -> Result<(i64, i64), Error> {
    let digits = text.len();
    if !(FEWEST_DIGITS..=DIGITS as usize).contains(&digits)
        || !text.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return Err(Error::NoId);
    }
    let open = 4 * (DIGITS - u32::try_from(digits).unwrap_or(DIGITS));
    let first = i64::from_str_radix(text, 16).map_err(|_| Error::NoId)? << open;
    Ok((first, first | ((1 << open) - 1)))
}

/// The group that is meant by an id, or by the beginning of one.
pub async fn find(database: &Database, text: &str) -> Result<GroupId, Error> {
    let (first, last) = range(text)?;
    let found: Vec<i64> = sqlx::query_scalar(statement!("failures/named"))
        .bind(first)
        .bind(last)
        .bind(database.among(None))
        .persistent(false)
        .all(database)
        .await?;
    match found[..] {
        [] => Err(Error::NotFound(text.to_owned())),
        [group] => Ok(GroupId(group)),
        _ => Err(Error::Ambiguous(text.to_owned())),
    }
}

/// Which groups; every field that is given must match.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Of this definition.
    pub definition: Option<DefinitionId>,
    /// Of this kind.
    pub kind: Option<FailureKind>,
    /// In which something ended at this time or later.
    pub after: Option<Timestamp>,
    /// In which something ended before this time.
    pub before: Option<Timestamp>,
    /// With this text in the message of the last.
    pub text: Option<String>,
}

/// The groups there are, the one with the newest failure first. At most 5,000 are looked at.
pub async fn groups(database: &Database, filter: &Filter) -> Result<Vec<FailureGroup>, db::Error> {
    ask(database, filter, None).await
}

/// Writes into each group how many of it ended in each of the last 24 hours.
pub async fn tell_trends(database: &Database, groups: &mut [FailureGroup]) -> Result<(), db::Error> {
    let ids: Vec<i64> = groups
        .iter()
        .filter_map(|group| i64::from_str_radix(&group.id, 16).ok())
        .collect();
    let rows: Vec<(i64, i32, i64)> = sqlx::query_as(statement!("failures/trend"))
        .bind(&ids)
        .bind(database.among(None))
        .bind(HOURS)
        .bind(COUNTED - 1)
        .persistent(false)
        .all(database)
        .await?;
    for group in groups {
        let mut trend = vec![0; usize::try_from(HOURS).unwrap_or_default()];
        let id = i64::from_str_radix(&group.id, 16).ok();
        for (_, hour, count) in rows.iter().filter(|(of, ..)| Some(*of) == id) {
            if let Some(part) = usize::try_from(*hour).ok().and_then(|hour| trend.get_mut(hour)) {
                *part += count;
            }
        }
        group.trend = Some(trend);
    }
    Ok(())
}

/// One group; `None` when nothing of it needs a person any more.
pub async fn group(database: &Database, group: GroupId) -> Result<Option<FailureGroup>, db::Error> {
    let found = ask(database, &Filter::default(), Some(group)).await?;
    Ok(found.into_iter().next())
}

async fn ask(
    database: &Database,
    filter: &Filter,
    group: Option<GroupId>,
) -> Result<Vec<FailureGroup>, db::Error> {
    sqlx::query_as(statement!("failures/groups"))
        .bind(database.among(filter.workspace))
        .bind(filter.kind)
        .bind(filter.definition)
        .bind(filter.after.map(jiff_sqlx::Timestamp::from))
        .bind(filter.before.map(jiff_sqlx::Timestamp::from))
        .bind(filter.text.as_deref().map(like))
        .bind(GROUPS)
        .bind(COUNTED)
        .bind(group.map(|group| group.0))
        .persistent(false)
        .all(database)
        .await
}

/// A failure and its place among those of its group.
#[derive(sqlx::FromRow)]
pub struct Member {
    /// Its place.
    pub id: i64,
    /// The failure.
    #[sqlx(flatten)]
    pub failure: Failure,
}

/// Failures of a group, newest first, what was set aside among them.
pub async fn members(
    database: &Database,
    group: GroupId,
    below: Option<i64>,
    rows: i64,
) -> Result<Vec<Member>, db::Error> {
    sqlx::query_as(statement!("failures/members"))
        .bind(database.among(None))
        .bind(group.0)
        .bind(below.unwrap_or(i64::MAX))
        .bind(rows)
        .persistent(false)
        .all(database)
        .await
}

/// What a request is about, page by page.
struct Open<'a> {
    request: &'a BulkFailures,
    group: Option<GroupId>,
}

impl<'a> Open<'a> {
    async fn of(database: &Database, request: &'a BulkFailures) -> Result<Self, Error> {
        let goes_on = request.after.is_some() || request.before.is_some();
        let group = match &request.group {
            Some(text) => Some(match find(database, text).await {
                // Somebody looked at it before, and of a group of which nothing is left nothing is left to do.
                Err(Error::NotFound(_)) if goes_on => GroupId(range(text)?.0),
                found => found?,
            }),
            None => None,
        };
        Ok(Self { request, group })
    }
}

/// One failure, as far as it takes to do something about it.
#[derive(Debug, Clone, sqlx::FromRow)]
struct Case {
    id: i64,
    kind: FailureKind,
    item_id: Option<Uuid>,
    alarm_id: Option<Uuid>,
    #[sqlx(try_from = "MaybeAt")]
    scheduled_for: Option<Timestamp>,
    signal_id: Option<String>,
    signal_key: Option<String>,
}

impl Case {
    /// Where a walk goes on.
    fn at(id: i64) -> Self {
        Self {
            id,
            kind: FailureKind::Start,
            item_id: None,
            alarm_id: None,
            scheduled_for: None,
            signal_id: None,
            signal_key: None,
        }
    }
}

impl Pages for Open<'_> {
    type Item = Case;

    async fn page(
        &self,
        database: &Database,
        after: Option<Case>,
        limit: i64,
    ) -> Result<Vec<Case>, db::Error> {
        sqlx::query_as(statement!("failures/matching"))
            .bind(database.among(self.request.workspace_id.map(WorkspaceId)))
            .bind(self.group.map(|group| group.0))
            .bind(self.request.kind)
            .bind(self.request.workflow_definition_id)
            .bind(self.request.before.map(jiff_sqlx::Timestamp::from))
            .bind(after.map_or(0, |case| case.id))
            .bind(limit)
            .bind(self.request.ended_after.map(jiff_sqlx::Timestamp::from))
            .persistent(false)
            .all(database)
            .await
    }

    fn place(case: &Case) -> String {
        case.id.to_string()
    }

    fn read(place: &str) -> Option<Case> {
        place.parse().ok().map(Case::at)
    }

    fn name(case: &Case) -> String {
        match (case.item_id, case.alarm_id, case.scheduled_for, &case.signal_id) {
            (Some(item), ..) => item.to_string(),
            (_, Some(alarm), Some(at), _) => format!("{alarm}:{at}"),
            (.., Some(signal)) => signal.clone(),
            _ => String::new(),
        }
    }
}

/// Tries again what failed: items go back into the queue, occurrences are due again, signals go back into the inbox. A dry run counts.
pub async fn retry(database: &Database, request: &BulkFailures, actor: &str) -> Result<BulkAnswer, Error> {
    let open = Open::of(database, request).await?;
    if request.dry_run {
        return Ok(count(database, &open).await?);
    }
    let again = |page: Vec<Case>| retry_page(database, page, actor);
    walk(database, &open, request.after.as_deref(), again).await
}

async fn retry_page(database: &Database, page: Vec<Case>, actor: &str) -> Result<usize, Error> {
    let (mut items, mut signals) = (Vec::new(), Vec::new());
    let mut occurrences: BTreeMap<AlarmId, Vec<Timestamp>> = BTreeMap::new();
    for case in page {
        match case.kind {
            FailureKind::Start | FailureKind::Execution => items.extend(case.item_id.map(ItemId)),
            FailureKind::Signal => signals.extend(case.signal_key),
            FailureKind::Occurrence => {
                if let (Some(alarm), Some(at)) = (case.alarm_id, case.scheduled_for) {
                    occurrences.entry(AlarmId(alarm)).or_default().push(at);
                }
            }
        }
    }
    let mut done = 0;
    if !items.is_empty() {
        done += operate::retry_some(database, &items, actor).await?;
    }
    if !signals.is_empty() {
        done += replay::back(database, &signals, actor).await?;
    }
    for (alarm, instants) in occurrences {
        done += match backfill::again(database, alarm, &instants, actor).await {
            Ok(opened) => opened,
            Err(alarms::operate::Error::Database(error)) => return Err(error.into()),
            // It went away meanwhile.
            Err(_) => 0,
        };
    }
    Ok(done)
}

/// Sets failures aside: they stay on record and need nobody any more. A dry run counts.
pub async fn set_aside(
    database: &Database,
    request: &BulkFailures,
    actor: &str,
) -> Result<BulkAnswer, Error> {
    let open = Open::of(database, request).await?;
    if request.dry_run {
        return Ok(count(database, &open).await?);
    }
    let aside = |page: Vec<Case>| async move {
        let ids: Vec<i64> = page.iter().map(|case| case.id).collect();
        let query = sqlx::query_scalar::<_, i64>(statement!("failures/set_aside"))
            .bind(ids)
            .bind(actor)
            .bind(&request.note);
        let done = query.one(database).await?;
        Ok::<_, Error>(usize::try_from(done).unwrap_or_default())
    };
    walk(database, &open, request.after.as_deref(), aside).await
}

/// What a cancel by group is about: everything that waits of the workflow whose starts or executions fail so.
pub async fn cancels(database: &Database, request: &BulkFailures) -> Result<BulkCancel, Error> {
    let text = request.group.as_deref().ok_or(Error::NoId)?;
    let found = group(database, find(database, text).await?).await?;
    let found = found.ok_or_else(|| Error::NotFound(text.to_owned()))?;
    match found.kind {
        FailureKind::Start | FailureKind::Execution => {}
        FailureKind::Occurrence => {
            let alarm = found.alarm_id.unwrap_or_default();
            let words = format!("these are occurrences of alarm {alarm}: pause or cancel the alarm instead");
            return Err(Error::WrongKind(words));
        }
        FailureKind::Signal => {
            let words = "these are dead letters, and nothing follows them: set them aside instead";
            return Err(Error::WrongKind(words.to_owned()));
        }
    }
    Ok(BulkCancel {
        workspace_id: found.workspace_id,
        workflow_definition_id: found.workflow_definition_id,
        status: Some(CancellableStatus::Pending),
        created_before: request.before,
        reason: request.note.clone(),
        after: request.after.clone(),
        dry_run: request.dry_run,
        ..BulkCancel::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_may_be_cut_short_and_means_all_that_begin_so() {
        assert_eq!(
            range("0123456789abcde").unwrap(),
            (0x0012_3456_789a_bcde, 0x0012_3456_789a_bcde)
        );
        assert_eq!(
            range("ffff").unwrap(),
            (0x0fff_f000_0000_0000, 0x0fff_ffff_ffff_ffff)
        );
        assert_eq!(GroupId(range("00ab12").unwrap().0).to_string(), "00ab12000000000");
        for wrong in ["", "abc", "xyzxyz", "0123456789abcdef", "+123", "12 4"] {
            assert!(matches!(range(wrong), Err(Error::NoId)), "{wrong}");
        }
    }
}
