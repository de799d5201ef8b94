//! Alarms and their occurrences.

use anyhow::Result;
use jiff::Timestamp;
use stationmaster_client::wire;
use stationmaster_core::alarms::inspect;
use stationmaster_core::alarms::{AlarmStatus, backfill, edit, operate, set};
use stationmaster_core::db::Database;
use stationmaster_core::id::{AlarmId, WorkspaceId};
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::instant;
use super::{Backend, Listed, cut, place, place_by, rows, size, told};
use crate::failure::Refusal;
use crate::http::{Problem, shapes};

impl Backend {
    pub(in crate::command) async fn set_alarm(&self, request: wire::NewAlarm) -> Result<wire::AlarmMade> {
        match self {
            Self::Database(direct) => {
                let workspace = WorkspaceId(request.workspace_id);
                let request =
                    shapes::alarm_request(workspace, request).map_err(|problem| unusable(&problem))?;
                let answer = set::set(&direct.database, &request, &Context::actor()).await?;
                let wire::AlarmDetails { alarm, upcoming } =
                    shapes::alarm_details(find(&direct.database, answer.alarm()).await?);
                Ok(wire::AlarmMade {
                    alarm,
                    upcoming,
                    duplicate: matches!(answer, set::Answer::Before(_)),
                })
            }
            Self::Api(client) => Ok(client.set_alarm(&request).await?),
        }
    }

    /// Alarms that match; the limit and the cursor of the query are not looked at.
    pub(in crate::command) async fn alarms(
        &self,
        query: &wire::AlarmQuery,
        limit: usize,
        before: Option<&str>,
    ) -> Result<Listed<wire::Alarm>> {
        Listed::read(limit, before, async |limit, before| match self {
            Self::Database(direct) => {
                let filter = inspect::Filter {
                    text: query.search.clone(),
                    workspace: query.workspace_id.map(WorkspaceId),
                    status: query.status.map(shapes::Translate::translate),
                    kind: query.kind.map(shapes::Translate::translate),
                    before: place(before)?.map(AlarmId),
                    limit: rows(limit) + 1,
                };
                let found = inspect::alarms(&direct.database, &filter).await?;
                let found = found.into_iter().map(shapes::alarm).collect();
                Ok(cut(found, limit, |alarm: &wire::Alarm| alarm.id.to_string()))
            }
            Self::Api(client) => {
                let query = wire::AlarmQuery {
                    limit: size(limit),
                    cursor: before,
                    ..query.clone()
                };
                Ok(told(client.alarms(&query).await?))
            }
        })
        .await
    }

    pub(in crate::command) async fn alarm(&self, id: Uuid) -> Result<wire::AlarmDetails> {
        match self {
            Self::Database(direct) => {
                let alarm = find(&direct.database, AlarmId(id)).await?;
                Ok(shapes::alarm_details(alarm))
            }
            Self::Api(client) => Ok(client.alarm(id).await?),
        }
    }

    /// What was done to an alarm lately, oldest first.
    pub(in crate::command) async fn alarm_events(
        &self,
        id: Uuid,
        limit: usize,
    ) -> Result<Vec<wire::AlarmEvent>> {
        let mut events: Vec<wire::AlarmEvent> = match self {
            Self::Database(direct) => {
                let found = inspect::history(&direct.database, AlarmId(id), None, rows(limit)).await?;
                let event = |event: inspect::Event| wire::AlarmEvent {
                    id: event.id,
                    at: event.at,
                    event: event.event,
                    actor: event.actor,
                    detail: event.detail,
                };
                found.into_iter().map(event).collect()
            }
            Self::Api(client) => {
                let query = wire::PageQuery {
                    limit: size(limit),
                    cursor: None,
                };
                client.alarm_history(id, &query).await?.items
            }
        };
        events.reverse();
        Ok(events)
    }

    pub(in crate::command) async fn change_alarm(
        &self,
        id: Uuid,
        change: wire::AlarmChange,
    ) -> Result<wire::AlarmDetails> {
        match self {
            Self::Database(direct) => {
                let before = find(&direct.database, AlarmId(id)).await?;
                let change = shapes::alarm_change(&before, change).map_err(|problem| unusable(&problem))?;
                let after = edit::edit(&direct.database, AlarmId(id), &change, &Context::actor()).await?;
                Ok(shapes::alarm_details(after))
            }
            Self::Api(client) => Ok(client.change_alarm(id, &change, None).await?),
        }
    }

    /// Answers the status that it has now.
    pub(in crate::command) async fn cancel_alarm(&self, id: Uuid) -> Result<String> {
        match self {
            Self::Database(direct) => {
                let status = operate::cancel(&direct.database, AlarmId(id), &Context::actor(), None).await?;
                if status != AlarmStatus::Cancelled {
                    let message = format!("alarm {id} has ended before: it is {status}");
                    return Err(operate::Error::WrongState(message).into());
                }
                Ok(status.to_string())
            }
            Self::Api(client) => {
                client.cancel_alarm(id).await?;
                Ok("cancelled".to_owned())
            }
        }
    }

    pub(in crate::command) async fn pause_alarm(&self, id: Uuid) -> Result<()> {
        match self {
            Self::Database(direct) => operate::pause(&direct.database, AlarmId(id), &Context::actor())
                .await
                .map(drop)
                .map_err(Into::into),
            Self::Api(client) => Ok(client.pause_alarm(id).await.map(drop)?),
        }
    }

    pub(in crate::command) async fn resume_alarm(&self, id: Uuid) -> Result<()> {
        match self {
            Self::Database(direct) => operate::resume(&direct.database, AlarmId(id), &Context::actor())
                .await
                .map(drop)
                .map_err(Into::into),
            Self::Api(client) => Ok(client.resume_alarm(id).await.map(drop)?),
        }
    }

    /// Answers the nominal instant of the occurrence.
    pub(in crate::command) async fn fire_alarm(&self, id: Uuid) -> Result<Timestamp> {
        match self {
            Self::Database(direct) => {
                Ok(operate::fire(&direct.database, AlarmId(id), &Context::actor()).await?)
            }
            Self::Api(client) => Ok(client.fire_alarm(id).await?.scheduled_for),
        }
    }

    /// Occurrences that match; the limit and the cursor of the query are not looked at.
    pub(in crate::command) async fn occurrences(
        &self,
        id: Uuid,
        query: &wire::OccurrenceQuery,
        limit: usize,
        before: Option<&str>,
    ) -> Result<Listed<wire::Occurrence>> {
        if let Self::Database(direct) = self {
            find(&direct.database, AlarmId(id)).await?;
        }
        Listed::read(limit, before, async |limit, before| match self {
            Self::Database(direct) => {
                let status = query.status.map(shapes::Translate::translate);
                let found = inspect::occurrences(
                    &direct.database,
                    AlarmId(id),
                    status,
                    place_by(before, instant)?,
                    rows(limit) + 1,
                )
                .await?;
                let found = found.into_iter().map(shapes::occurrence).collect();
                Ok(cut(found, limit, |row: &wire::Occurrence| {
                    row.scheduled_for.to_string()
                }))
            }
            Self::Api(client) => {
                let query = wire::OccurrenceQuery {
                    limit: size(limit),
                    cursor: before,
                    ..query.clone()
                };
                Ok(told(client.occurrences(id, &query).await?))
            }
        })
        .await
    }

    /// Fires occurrences of the past, or tells which it would fire.
    pub(in crate::command) async fn backfill(
        &self,
        id: Uuid,
        range: &wire::Backfill,
    ) -> Result<wire::Backfilled> {
        match self {
            Self::Database(direct) => {
                let (database, alarm) = (&direct.database, AlarmId(id));
                let mut planned = backfill::preview(database, alarm, range.from, range.to).await?;
                if !range.dry_run {
                    let actor = Context::actor();
                    let made = backfill::backfill(database, alarm, range.from, range.to, &actor).await?;
                    for item in &mut planned {
                        item.fires = made.contains(&item.scheduled_for);
                    }
                }
                Ok(wire::Backfilled {
                    dry_run: range.dry_run,
                    items: planned.into_iter().map(shapes::backfill_item).collect(),
                })
            }
            Self::Api(client) => Ok(client.backfill(id, range).await?),
        }
    }
}

async fn find(database: &Database, id: AlarmId) -> Result<inspect::Alarm> {
    let alarm = inspect::alarm(database, id).await?;
    Ok(alarm.ok_or(operate::Error::NotFound(id))?)
}

/// What a server would refuse in these words.
fn unusable(problem: &Problem) -> Refusal {
    Refusal::usage(problem.words(), "Change the request; nothing was stored")
}
