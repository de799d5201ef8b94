//! What is done to alarms.

use jiff::Timestamp;
use maud::html;
use stationmaster_client::wire::{Backfill, Dst, Misfire, NewAlarm, Overlap, Reference};
use uuid::Uuid;

use super::super::fields::Fields;
use super::super::frame::Trouble;
use super::super::overview::called;
use super::super::pieces::{alarm_lamp, many, maybe_time, time};
use super::super::session::Visitor;
use super::{Deed, Done, Input, Kind, Look, Seen, typed};

pub(super) async fn look(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    let client = &visitor.client;
    if name == "pause-alarms" {
        let mut alarms = Vec::new();
        for id in fields.all("id") {
            alarms.push(client.alarm(id).await?.alarm);
        }
        let words = html! {
            p { "These and no others fire no more until they are resumed:" }
            ul { @for alarm in &alarms { li { (called(alarm)) " " span.quiet { (alarm.workspace.as_deref().unwrap_or_default()) } } } }
        };
        let mut look = Look::new(
            "Pause alarms",
            &format!("Pause {}", many(alarms.len(), "alarm")),
            words,
        );
        for alarm in &alarms {
            look = look.bind("id", alarm.id);
        }
        look.button = look.button.filter(|_| !alarms.is_empty());
        return Ok(look);
    }
    if name == "set-alarm" {
        return Err(Trouble::not_found("an alarm is set on its own page"));
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
    if name == "pause-alarms" {
        let mut paused = 0_i64;
        for id in fields.all("id") {
            client.pause_alarm(id).await?;
            paused += 1;
        }
        return Ok(Done::said(format!("Paused {}.", many(paused, "alarm"))));
    }
    let id = fields.must::<Uuid>("id")?;
    let to_it = format!("/alarms/{id}");
    Ok(match name {
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
