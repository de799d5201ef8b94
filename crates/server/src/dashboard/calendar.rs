//! The coming fires of all alarms: how many come when, the soonest on a line each, and what moving clocks do to them.

#![expect(
    clippy::cast_precision_loss,
    reason = "what is drawn or told to people needs no more digits"
)]

use jiff::Timestamp;
use maud::{Markup, html};
use stationmaster_client::wire::{Calendar, CalendarAlarm, CalendarQuery};

use super::charts::{self, Series};
use super::fields::{Fields, address};
use super::frame::Trouble;
use super::pieces::{grouped, many, nothing, short, time};
use super::session::Visitor;

/// How far ahead, as the address says it, in words, and in hours.
const HORIZONS: [(&str, &str, u32); 2] = [("24h", "24 hours", 24), ("7d", "7 days", 168)];
/// Alarms on lines of their own.
const DRAWN: usize = 12;
/// Where lines begin and how long they are.
const LEFT: f64 = 200.0;
const LONG: f64 = 780.0;

/// The calendar of the time that the address asks for, with the way to the other.
pub(super) async fn show(visitor: &Visitor, fields: &Fields) -> Result<Markup, Trouble> {
    let asked = fields.get("ahead").unwrap_or_default();
    let (horizon, words, hours) = HORIZONS
        .iter()
        .find(|(horizon, ..)| *horizon == asked)
        .unwrap_or(&HORIZONS[0]);
    let query = CalendarQuery {
        workspace_id: fields.reference("workspace"),
        hours: Some(*hours),
    };
    let calendar = visitor.client.alarm_calendar(&query).await?;
    let to = |ahead: &str| {
        let mut pairs = fields.without(&["ahead"]);
        pairs.push(("ahead".to_owned(), ahead.to_owned()));
        address("/alarms", &pairs)
    };
    Ok(html! {
        h2 { "The next " (words) }
        div.range role="group" aria-label="How far ahead" {
            @for (ahead, words, _) in HORIZONS { a href=(to(ahead)) aria-current=[(ahead == *horizon).then_some("true")] { (words) } }
        }
        @if calendar.alarms.is_empty() { (nothing("Nothing fires within this time.")) }
        @else {
            @if calendar.fires > 0 { (counts(&calendar)) }
            (lines(&calendar))
            p.quiet { (told(&calendar)) }
        }
        (notes(&calendar))
    })
}

/// How many fires come in each step.
fn counts(calendar: &Calendar) -> Markup {
    let times: Vec<Timestamp> = calendar.steps.iter().map(|step| step.at).collect();
    let fires = Series {
        name: "fires",
        class: "busy",
        values: calendar.steps.iter().map(|step| step.fires as f64).collect(),
    };
    let unit = if calendar.step_seconds > 3600 {
        "in three hours"
    } else {
        "an hour"
    };
    charts::bars("Fires of all alarms", unit, &times, &[fires])
}

fn told(calendar: &Calendar) -> String {
    let often = many(calendar.frequent, "alarm");
    let mut words = match (calendar.fires, calendar.frequent) {
        (0, _) => format!("{often}, too frequent to be counted"),
        (fires, 0) => format!("{} in all", many(grouped(fires), "fire")),
        (fires, _) => format!(
            "{} in all, besides {often} too frequent to be counted",
            many(grouped(fires), "fire")
        ),
    };
    if calendar.more {
        words.push_str("; of very many alarms those that fire next were looked at");
    }
    words.push_str(". Times on the lines are UTC.");
    words
}

/// What people call it.
fn called(alarm: &CalendarAlarm) -> String {
    let label = Some(alarm.label.clone()).filter(|label| !label.is_empty());
    let name = alarm.name.clone().or(label);
    name.unwrap_or_else(|| short(alarm.id))
}

/// The soonest on a line each, to the hour so that the picture rests between two of them.
fn lines(calendar: &Calendar) -> Markup {
    let whole = (calendar.to.as_second() - calendar.from.as_second()).max(1);
    let place = |at: Timestamp| {
        let part = (at.as_second() - calendar.from.as_second()) as f64 / whole as f64;
        (0.0..=1.0)
            .contains(&part)
            .then(|| format!("{:.1}", LEFT + part * LONG))
    };
    let drawn = &calendar.alarms[..calendar.alarms.len().min(DRAWN)];
    let height = drawn.len() * 26 + 24;
    let days = whole > 48 * 3600;
    let (parts, form) = if days { (7, "%a %d.") } else { (6, "%H:%M") };
    let marks = (0..=parts).filter_map(|part| {
        let second = calendar.from.as_second() + whole / parts * part;
        Timestamp::from_second(second).ok()
    });
    let noted = |alarm: &CalendarAlarm, at: Timestamp| {
        let note = calendar
            .notes
            .iter()
            .find(|note| note.alarm_id == alarm.id && note.at == at);
        note.map(|note| note.note.as_str())
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Coming fires" {
            svg.firing viewBox=(format!("0 0 1000 {height}")) width="1000" height=(height) role="group" aria-label=(format!("The next fires of {} alarms", drawn.len())) {
                @for mark in marks { @if let Some(x) = place(mark) {
                    path.grid d=(format!("M{x} 0V{}", height - 20)) {}
                    text.axis x=(x) y=(height - 5) text-anchor="middle" { (mark.strftime(form).to_string()) }
                } }
                @for (row, alarm) in drawn.iter().enumerate() {
                    @let y = row * 26 + 14;
                    a href=(format!("/alarms/{}", alarm.id)) { text.name x="0" y=(y + 4) { (called(alarm).chars().take(28).collect::<String>()) } }
                    path.grid d=(format!("M{LEFT} {y}H{}", LEFT + LONG)) {}
                    @if alarm.more { rect.often x=(LEFT) y=(y - 4) width=(LONG) height="8" rx="4" { title { "It fires more often than can be drawn." } } }
                    @else { @for at in &alarm.fires { @if let Some(x) = place(*at) {
                        @let note = noted(alarm, *at);
                        circle.fire.noted[note.is_some()] cx=(x) cy=(y) r=(if days { "3.5" } else { "5" }) { title { (at) @if let Some(note) = note { " · " (note) } } }
                    } } }
                }
            }
        }
    }
}

/// Fires that moving clocks have to do with, of whichever alarm.
fn notes(calendar: &Calendar) -> Markup {
    html! {
        @if !calendar.notes.is_empty() {
            h3 { "Where clocks move" }
            ol.fires #clocks { @for note in &calendar.notes { li {
                (time(note.at)) " " a href=(format!("/alarms/{}", note.alarm_id)) { (note.alarm) } " " code { (note.local) } " " strong.note { (note.note) }
            } } }
        }
    }
}
