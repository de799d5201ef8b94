//! What is done to alarms.

use futures::future::join_all;
use jiff::Timestamp;
use maud::html;
use stationmaster_client::wire::{
    Alarm, AlarmChange, AlarmQuery, AlarmStatus, Backfill, Dst, Misfire, NewAlarm, Overlap, Reference,
};
use stationmaster_client::{Client, Error};
use uuid::Uuid;

use super::super::fields::Fields;
use super::super::frame::Trouble;
use super::super::lists::Whole;
use super::super::overview::called;
use super::super::pieces::{alarm_lamp, many, maybe_time, time};
use super::super::session::Visitor;
use super::{Deed, Done, Input, Kind, Look, Seen, typed};

pub(super) async fn look(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    let client = &visitor.client;
    if let Some(pauses) = several(name) {
        return look_at_several(visitor, pauses, fields).await;
    }
    if matches!(name, "set-alarm" | "change-alarm") {
        return Err(Trouble::not_found("an alarm is set and changed on its own page"));
    }
    let id = fields.must::<Uuid>("id")?;
    let details = client.alarm(id).await?;
    let (alarm, is) = (&details.alarm, called(&details.alarm));
    let state = html! { p { "It is " (alarm_lamp(alarm.status)) ", its next fire " (maybe_time(alarm.next_fire_at)) "." } };
    let look = match name {
        "pause-alarm" => Look::new(
            format!("Pause {is}"),
            "Pause it",
            html! { (state) p { "It fires no more until it is resumed." } },
        ),
        "resume-alarm" => Look::new(
            format!("Resume {is}"),
            "Resume it",
            html! { (state) p { "It fires again, from the next instant on." } },
        ),
        "fire-alarm" => Look::new(
            format!("Fire {is} now"),
            "Fire it now",
            html! { (state) p { "One occurrence beside its schedule, which stays as it is." } },
        ),
        "cancel-alarm" => Look::new(
            format!("Cancel {is}"),
            "Cancel it",
            html! { (state) p { "For good: it cannot be resumed." } },
        )
        .for_good(),
        "backfill" => {
            let range = (
                fields.parse::<Timestamp>("from")?,
                fields.parse::<Timestamp>("to")?,
            );
            let (Some(from), Some(to)) = range else {
                let now = Timestamp::now();
                let words = html! { (state) p { "Fires occurrences of the past again, or those that were missed: those after the first instant, up to the second. The next page shows which." } };
                let ask = Look::new(format!("Backfill {is}"), "Show which", words)
                    .ask(Input::new(
                        Kind::Text,
                        "from",
                        "After (RFC 3339)",
                        now - jiff::SignedDuration::from_hours(1),
                    ))
                    .ask(Input::new(Kind::Text, "to", "Up to (RFC 3339)", now));
                return Ok(ask.bind("id", id).bind("only-look", "yes"));
            };
            let would = client
                .backfill(
                    id,
                    &Backfill {
                        from,
                        to,
                        dry_run: true,
                    },
                )
                .await?;
            let fires = would.items.iter().filter(|item| item.fires).count();
            let words = html! {
                p { strong { (many(fires, "occurrence")) } " would be fired:" }
                div.scroll tabindex="0" { table.rows {
                    thead { tr { th { "Nominal instant" } th { "Stood" } th { "Fires" } th { "Note" } } }
                    tbody { @for item in would.items.iter().take(200) { tr { td { (time(item.scheduled_for)) } td { (item.status) } td { @if item.fires { "yes" } @else { "no" } } td { (item.note.as_deref().unwrap_or_default()) } } } }
                } }
            };
            let mut look = Look::new(
                format!("Backfill {is}"),
                &format!("Fire {}", many(fires, "occurrence")),
                words,
            )
            .bind("from", from)
            .bind("to", to);
            look.button = look.button.filter(|_| fires > 0);
            look
        }
        _ => return Err(Trouble::not_found(name)),
    };
    Ok(look.bind("id", id))
}

pub(super) async fn carry(visitor: &Visitor, name: &str, fields: &Fields) -> Deed {
    let client = &visitor.client;
    if name == "set-alarm" {
        let made = client.set_alarm(&asked(fields)?).await?;
        return Ok(Done::said("The alarm is set.").at(format!("/alarms/{}", made.alarm.id)));
    }
    if let Some(pauses) = several(name) {
        return carry_several(visitor, pauses, fields).await;
    }
    let id = fields.must::<Uuid>("id")?;
    let to_it = format!("/alarms/{id}");
    Ok(match name {
        "change-alarm" => {
            let before = client.alarm(id).await?.alarm;
            let change = changed(&before, fields)?;
            client
                .change_alarm(id, &change, Some(fields.need("tag")?))
                .await?;
            Done::said("It is changed.").at(to_it)
        }
        "pause-alarm" => {
            client.pause_alarm(id).await?;
            Done::said("It is paused.")
        }
        "resume-alarm" => {
            client.resume_alarm(id).await?;
            Done::said("It fires again.")
        }
        "fire-alarm" => {
            client.fire_alarm(id).await?;
            Done::said("It fires.").at(to_it)
        }
        "cancel-alarm" => {
            let (_, tag) = client.with_tag(async |client| client.alarm(id).await).await?;
            let client = tag.map_or_else(|| Ok(client.clone()), |tag| client.only_if(&tag))?;
            client.cancel_alarm(id).await?;
            Done::said("It is cancelled.").at(to_it)
        }
        "backfill" => {
            let (from, to) = (fields.must::<Timestamp>("from")?, fields.must::<Timestamp>("to")?);
            if fields.get("only-look").is_some() {
                let pairs = [
                    ("id", id.to_string()),
                    ("from", from.to_string()),
                    ("to", to.to_string()),
                    ("back", to_it),
                ];
                return Ok(Done::said("Nothing was fired yet.")
                    .at(super::super::fields::address("/act/backfill", &pairs)));
            }
            let done = client
                .backfill(
                    id,
                    &Backfill {
                        from,
                        to,
                        dry_run: false,
                    },
                )
                .await?;
            let fired = done.items.iter().filter(|item| item.fires).count();
            Done::said(format!("Fired {}.", many(fired, "occurrence"))).at(to_it)
        }
        _ => return Err(Trouble::not_found(name)),
    })
}

/// Does this pause many, or resume many?
fn several(name: &str) -> Option<bool> {
    match name {
        "pause-alarms" => Some(true),
        "resume-alarms" => Some(false),
        _ => None,
    }
}

/// All that the filter finds now, or the rows that were ticked; the deed is bound to them by their ids, and to nothing that comes later.
async fn look_at_several(visitor: &Visitor, pauses: bool, fields: &Fields) -> Seen {
    let client = &visitor.client;
    let wanted = if pauses {
        AlarmStatus::Active
    } else {
        AlarmStatus::Paused
    };
    let filter = fields.only(&["workspace", "status", "kind", "search"]);
    let ticked: Vec<&str> = fields.all("id").collect();
    let found = if ticked.is_empty() {
        let query = AlarmQuery {
            status: Some(wanted),
            ..super::super::alarms::query_of(fields)?
        };
        super::super::alarms::all_of(client, &query).await?
    } else {
        Whole {
            items: those(client, &ticked, wanted).await,
            cut: false,
        }
    };
    let (count, told) = (found.items.len(), found.items.iter().take(50));
    let words = html! {
        p.count-words { strong { (many(count, "alarm")) } @if pauses { " would fire no more until resumed." } @else { " would fire again, from the next instant on." } }
        dl.facts {
            @for (name, value) in &filter { dt { (name) } dd { (value) } }
            @if !ticked.is_empty() { dt { "ticked" } dd { (ticked.len()) } }
            @else if filter.is_empty() { dt { "filter" } dd { "none: everything that you may see" } }
        }
        ul.sample { @for alarm in told { li { (called(alarm)) " " span.quiet { (alarm.workspace.as_deref().unwrap_or_default()) " · next " (maybe_time(alarm.next_fire_at)) } } } }
        @if count > 50 { p.quiet { "and " (count - 50) " more" } }
        @if found.cut { p.quiet { "There are more than can be done at once: do it again afterwards." } }
        p.quiet { "These and no others: what is set or changes meanwhile is not touched, however long this page stays open." }
    };
    let (title, button) = if pauses {
        ("Pause alarms", "Pause")
    } else {
        ("Resume alarms", "Resume")
    };
    let mut look = Look::new(title, &format!("{button} {}", many(count, "alarm")), words);
    for alarm in &found.items {
        look = look.bind("id", alarm.id);
    }
    look.button = look.button.filter(|_| count > 0);
    Ok(look)
}

/// Of the rows that were ticked, those to which it can be done.
async fn those(client: &Client, ticked: &[&str], wanted: AlarmStatus) -> Vec<Alarm> {
    let asked = ticked.iter().map(|id| client.alarm(*id));
    let found = join_all(asked).await.into_iter();
    found
        .filter_map(|details| Some(details.ok()?.alarm))
        .filter(|alarm| alarm.status == wanted)
        .collect()
}

async fn carry_several(visitor: &Visitor, pauses: bool, fields: &Fields) -> Deed {
    let client = &visitor.client;
    let (mut done, mut others) = (0_i64, 0_i64);
    for id in fields.all("id") {
        // One that has ended meanwhile stays as it is.
        let now = client.alarm(id).await.map(|details| details.alarm.status);
        let stands = if pauses {
            AlarmStatus::Active
        } else {
            AlarmStatus::Paused
        };
        if now.ok() != Some(stands) {
            others += 1;
            continue;
        }
        let moved = if pauses {
            client.pause_alarm(id).await
        } else {
            client.resume_alarm(id).await
        };
        match moved {
            Ok(_) => done += 1,
            Err(Error::Conflict(_) | Error::NotFound(_)) => others += 1,
            Err(error) => return Err(error.into()),
        }
    }
    let mut words = format!(
        "{} {}.",
        if pauses { "Paused" } else { "Resumed" },
        many(done, "alarm")
    );
    if others > 0 {
        words.push_str(" The others had changed meanwhile.");
    }
    Ok(Done::said(words))
}

/// What the form says otherwise than the alarm does. What was emptied is taken away; a zone that was emptied is what the field says then, UTC.
fn changed(before: &Alarm, fields: &Fields) -> Result<AlarmChange, Trouble> {
    let has_time = before.cron_expr.is_some() || before.civil_at.is_some();
    if has_time && fields.get("cron").is_none() && fields.get("civil").is_none() {
        let words = "it has to say when it fires: by an expression, or once at a local time";
        return Err(Trouble::invalid(words));
    }
    let other = |name: &str, now: Option<&str>| {
        let said = fields.owned(name);
        (said.as_deref() != now.filter(|now| !now.is_empty())).then_some(said)
    };
    let payload = typed(fields, "payload")?;
    let same =
        payload.as_ref().map(|payload| payload.get()) == before.payload.as_ref().map(|payload| payload.get());
    let pause_after = fields.parse::<u32>("pause_after")?;
    let paused_before = before.pause_after.and_then(|after| u32::try_from(after).ok());
    Ok(AlarmChange {
        label: other("label", Some(&before.label)).map(Option::unwrap_or_default),
        cron_expr: other("cron", before.cron_expr.as_deref()).flatten(),
        civil_at: other("civil", before.civil_at.as_deref()).flatten(),
        timezone: other("zone", before.timezone.as_deref())
            .map(|zone| zone.unwrap_or_else(|| "UTC".to_owned())),
        target_url: other("target", before.target_url.as_deref()),
        message: other("message", before.message.as_deref()),
        payload: (!same).then_some(payload),
        misfire: fields
            .parse::<Misfire>("misfire")?
            .filter(|word| *word != before.misfire),
        overlap: fields
            .parse::<Overlap>("overlap")?
            .filter(|word| *word != before.overlap),
        dst: fields.parse::<Dst>("dst")?.filter(|word| *word != before.dst),
        pause_after: (pause_after != paused_before).then_some(pause_after),
        ..AlarmChange::default()
    })
}

/// The alarm that a form asks for.
fn asked(fields: &Fields) -> Result<NewAlarm<Reference>, Trouble> {
    let workspace = fields.reference("workspace");
    let alarm = NewAlarm {
        workspace_id: workspace.ok_or_else(|| Trouble::invalid("workspace: it is missing"))?,
        label: fields.owned("label").unwrap_or_default(),
        name: fields.owned("name"),
        fire_at: None,
        delay: None,
        civil_at: fields.owned("civil"),
        cron_expr: fields.owned("cron"),
        timezone: fields.owned("zone"),
        target_url: fields.owned("target"),
        user_id: None,
        conversation_id: None,
        message: fields.owned("message"),
        payload: typed(fields, "payload")?,
        idempotency_key: fields.get("key").map(|key| format!("dashboard-{key}")),
        max_failures: None,
        misfire: fields.parse::<Misfire>("misfire")?,
        catch_up: None,
        misfire_window: None,
        overlap: fields.parse::<Overlap>("overlap")?,
        dst: fields.parse::<Dst>("dst")?,
        jitter: None,
        start_at: None,
        end_at: None,
        pause_after: fields.parse("pause_after")?,
        traceparent: None,
    };
    Ok(alarm)
}
