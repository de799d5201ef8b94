//! A calendar: the coming fires of all alarms in scope within a time. Reads only; when something fires is worked out from what is written
//! down, by the same rules by which it will fire.

use jiff::{SignedDuration, Timestamp};
use stationmaster_wire::{Calendar, CalendarAlarm, CalendarNote, CalendarStep, Upcoming};
use uuid::Uuid;

use super::terms::{Schedule, Written};
use crate::columns::At;
use crate::db::{self, Database, Read as _, statement};
use crate::id::WorkspaceId;

/// Alarms that are looked at.
const LOOKED_AT: i64 = 2_000;
/// Fires that are worked out in all, and of one alarm.
const WORKED_OUT: usize = 40_000;
const OF_ONE: usize = 200;
/// Alarms and notes that are told one by one.
const TOLD: usize = 20;
const NOTES: usize = 50;

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    workspace_id: Uuid,
    workspace: Option<String>,
    name: Option<String>,
    label: String,
    #[sqlx(try_from = "At")]
    next_fire_at: Timestamp,
    #[sqlx(flatten)]
    written: Written,
}

impl Row {
    /// Its fires before an instant, one more than `most` when there are more. What is due and not yet made comes first.
    fn fires(&self, until: Timestamp, most: usize) -> Vec<Upcoming> {
        let once = || Upcoming {
            at: self.next_fire_at,
            local: self.next_fire_at.to_string(),
            note: None,
        };
        match self.written.read() {
            Ok(Schedule::Cron(series)) => {
                let just_before = SignedDuration::from_nanos(1);
                let from = self.next_fire_at.checked_sub(just_before);
                let fires = series.fires(from.unwrap_or(self.next_fire_at));
                fires
                    .take_while(|fire| fire.at < until)
                    .take(most + 1)
                    .map(Upcoming::from)
                    .collect()
            }
            Ok(Schedule::Civil(fire)) => vec![(*fire).into()],
            Ok(Schedule::At(_)) | Err(_) => vec![once()],
        }
    }
}

/// The fires of the alarms in scope, or of a workspace, between two instants, counted by steps.
pub async fn calendar(
    database: &Database,
    workspace: Option<WorkspaceId>,
    from: Timestamp,
    to: Timestamp,
    step: SignedDuration,
) -> Result<Calendar, db::Error> {
    let rows: Vec<Row> = sqlx::query_as(statement!("alarms/coming"))
        .bind(database.among(workspace))
        .bind(jiff_sqlx::Timestamp::from(to))
        .bind(LOOKED_AT)
        .persistent(false)
        .all(database)
        .await?;
    Ok(draw(&rows, from, to, step))
}

fn draw(rows: &[Row], from: Timestamp, to: Timestamp, step: SignedDuration) -> Calendar {
    let most = (WORKED_OUT / rows.len().max(1)).clamp(1, OF_ONE);
    let mut steps = empty(from, to, step);
    let mut calendar = Calendar {
        from,
        to,
        step_seconds: step.as_secs(),
        steps: Vec::new(),
        fires: 0,
        alarms: Vec::new(),
        frequent: 0,
        notes: Vec::new(),
        more: i64::try_from(rows.len()).unwrap_or(i64::MAX) >= LOOKED_AT,
    };
    for row in rows {
        let mut fires = row.fires(to, most);
        let is_frequent = fires.len() > most;
        fires.truncate(most);
        if is_frequent {
            // Told as such: a part of its fires would look as if it stopped.
            calendar.frequent += 1;
        } else {
            for fire in &fires {
                count(&mut steps, from, step, fire.at);
                calendar.fires += 1;
            }
        }
        let noted = fires.iter().filter_map(|fire| Some((fire, fire.note.clone()?)));
        calendar.notes.extend(noted.map(|(fire, note)| CalendarNote {
            alarm_id: row.id,
            alarm: called(row),
            at: fire.at,
            local: fire.local.clone(),
            note,
        }));
        if calendar.alarms.len() < TOLD {
            calendar.alarms.push(CalendarAlarm {
                id: row.id,
                workspace_id: row.workspace_id,
                workspace: row.workspace.clone(),
                name: row.name.clone(),
                label: row.label.clone(),
                fires: fires.iter().map(|fire| fire.at).collect(),
                more: is_frequent,
            });
        }
    }
    calendar.notes.sort_by_key(|note| note.at);
    calendar.notes.truncate(NOTES);
    calendar.steps = steps;
    calendar
}

/// What people call it: its name, its label, or its id.
fn called(row: &Row) -> String {
    let label = Some(row.label.clone()).filter(|label| !label.is_empty());
    row.name.clone().or(label).unwrap_or_else(|| row.id.to_string())
}

fn empty(from: Timestamp, to: Timestamp, step: SignedDuration) -> Vec<CalendarStep> {
    let next = |step_before: &CalendarStep| step_before.at.checked_add(step).ok();
    let first = CalendarStep { at: from, fires: 0 };
    let steps = std::iter::successors(Some(first), |before| {
        next(before).map(|at| CalendarStep { at, fires: 0 })
    });
    steps.take_while(|step| step.at < to).collect()
}

/// What is late fires in the first step.
fn count(steps: &mut [CalendarStep], from: Timestamp, step: SignedDuration, at: Timestamp) {
    let place = (at.as_second() - from.as_second()).max(0) / step.as_secs().max(1);
    if let Some(step) = usize::try_from(place).ok().and_then(|place| steps.get_mut(place)) {
        step.fires += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn alarm(label: &str, cron: &str, zone: &str, next: &str) -> Row {
        Row {
            id: Uuid::now_v7(),
            workspace_id: Uuid::nil(),
            workspace: None,
            name: None,
            label: label.to_owned(),
            next_fire_at: at(next),
            written: Written {
                cron_expr: Some(cron.to_owned()),
                timezone: Some(zone.to_owned()),
                anchor_at: at("2026-01-01T00:00:00Z"),
                ..Written::default()
            },
        }
    }

    /// A day and a half in hours, over the night in which the clocks of Zurich go forward.
    fn drawn(rows: &[Row]) -> Calendar {
        let (from, to) = (at("2026-03-28T12:00:00Z"), at("2026-03-30T00:00:00Z"));
        draw(rows, from, to, SignedDuration::from_hours(1))
    }

    #[test]
    fn fires_of_all_alarms_are_counted_where_they_fall_and_what_clocks_do_is_noted() {
        let rows = [
            alarm("night", "30 2 * * *", "Europe/Zurich", "2026-03-29T01:00:00Z"),
            alarm("noon", "0 12 * * *", "UTC", "2026-03-28T12:00:00Z"),
        ];
        let calendar = drawn(&rows);
        assert_eq!((calendar.steps.len(), calendar.fires), (36, 3));
        let busy: Vec<(String, i64)> = calendar
            .steps
            .iter()
            .filter(|step| step.fires > 0)
            .map(|step| (step.at.to_string(), step.fires))
            .collect();
        let told = [
            ("2026-03-28T12:00:00Z".to_owned(), 1),
            ("2026-03-29T01:00:00Z".to_owned(), 1),
            ("2026-03-29T12:00:00Z".to_owned(), 1),
        ];
        assert_eq!(busy, told);
        assert_eq!(calendar.notes.len(), 1, "{:?}", calendar.notes);
        assert_eq!(calendar.notes[0].alarm, "night");
        assert!(!calendar.notes[0].note.is_empty());
    }

    #[test]
    fn what_fires_too_often_to_be_counted_is_told_as_such_and_not_counted_in_part() {
        let rows = [
            alarm("often", "* * * * *", "UTC", "2026-03-28T12:00:00Z"),
            alarm("late", "@daily", "UTC", "2026-03-28T00:00:00Z"),
        ];
        let calendar = drawn(&rows);
        assert_eq!(calendar.frequent, 1);
        assert!(calendar.alarms[0].more && calendar.alarms[0].fires.len() == OF_ONE);
        // The one that is late, and midnight.
        assert_eq!(calendar.fires, 2);
        assert_eq!((calendar.steps[0].fires, calendar.steps[12].fires), (1, 1));
    }
}
