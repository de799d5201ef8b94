//! An alarm is set, or changed, with a look at its fires. What was typed stays where something is wrong with it.

use axum::extract::Path;
use maud::{Markup, html};
use stationmaster_client::wire::{Alarm, Dst, NextQuery};

use super::Answer;
use super::actions::allowed;
use super::alarms::coming;
use super::fields::Fields;
use super::frame::{Page, Trouble};
use super::overview::called;
use super::session::Visitor;

/// The fires of what is typed.
async fn preview(visitor: &Visitor, fields: &Fields) -> Result<Markup, Trouble> {
    let next = match fields.get("cron") {
        None => None,
        Some(cron) => {
            let query = NextQuery {
                expr: cron.to_owned(),
                zone: fields.owned("zone"),
                dst: fields.parse::<Dst>("dst")?,
                after: None,
                count: Some(10),
            };
            Some(visitor.client.next_fires(&query).await)
        }
    };
    Ok(html! {
        section #preview data-live {
            h2 { "Its next ten fires" }
            @match &next {
                None => { p.quiet { "They appear here as you type an expression." } },
                Some(Err(error)) => { p.wrong { (error) } },
                Some(Ok(next)) => { p { strong { (next.description) } " " span.quiet { (next.timezone) } } (coming(&next.items)) },
            }
            p.quiet { a href="/docs" { "The API" } " knows more: jitter, start and end, catching up." }
        }
    })
}

/// What is asked for of a new alarm and of one that is there; the script asks for the fires again as one types.
fn sheet(fields: &Fields) -> Markup {
    let value = |name: &str| fields.owned(name).unwrap_or_default();
    let choice = |name: &'static str, label: &'static str, words: &[(&str, &str)]| {
        html! { label.field { (label) select name=(name) { @for (word, told) in words { option value=(word) selected[fields.get(name) == Some(word)] { (told) } } } } }
    };
    html! {
        label.field { "Label" input name="label" value=(value("label")) maxlength="200"; }
        label.field { "Cron expression" input name="cron" value=(value("cron")) placeholder="0 9 * * MON-FRI" autocomplete="off" spellcheck="false"; }
        label.field { "or once, at this local time" input name="civil" value=(value("civil")) placeholder="2027-03-28T02:30:00" autocomplete="off"; }
        label.field { "Zone" input name="zone" value=(value("zone")) placeholder="UTC" autocomplete="off" list="zones"; datalist #zones { @for zone in ["UTC", "Europe/Zurich", "Europe/London", "America/New_York", "America/Los_Angeles", "Asia/Tokyo", "Australia/Sydney"] { option value=(zone) {} } } }
        (choice("dst", "Moving clocks", &[("vixie", "once, whatever the clocks do"), ("skip", "not in a gap"), ("both", "twice in an overlap")]))
        (choice("misfire", "Missed ones", &[("coalesce", "one for all of them"), ("catch_up", "one each"), ("skip", "none")]))
        (choice("overlap", "While one is under way", &[("allow", "fire all the same"), ("queue", "wait"), ("skip", "skip")]))
        label.field { "Target (empty: the router)" input name="target" type="url" value=(value("target")) placeholder="https://…"; }
        label.field { "Message" input name="message" value=(value("message")); }
        label.field { "Payload (JSON)" textarea name="payload" rows="4" spellcheck="false" { (value("payload")) } }
        label.field { "Pause it after so many failures in a row (empty: never)" input name="pause_after" type="number" min="1" max="1000" value=(value("pause_after")); }
    }
}

pub(super) async fn form(visitor: Visitor, fields: Fields) -> Answer {
    new_form(&visitor, &fields, None).await
}

/// A new alarm; with what was wrong with it, if it was refused.
pub(super) async fn new_form(visitor: &Visitor, fields: &Fields, wrong: Option<&Trouble>) -> Answer {
    allowed(visitor, "set-alarm")?;
    let preview = preview(visitor, fields).await?;
    let workspace = fields.owned("workspace").unwrap_or_default();
    let body = html! {
        header.page { h1 { "Set an alarm" } }
        @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong.words) } }
        div.columns {
            form.sheet #alarm-form method="post" action="/act/set-alarm" data-preview="/alarms/new" {
                input type="hidden" name="back" value="/alarms";
                input type="hidden" name="key" value=(fields.owned("key").unwrap_or_else(|| uuid::Uuid::now_v7().to_string()));
                label.field { "Workspace" input name="workspace" value=(workspace) required autocomplete="off" data-complete="workspace" list="names-workspace"; datalist #names-workspace {} }
                (sheet(fields))
                div.actions {
                    button.primary { "Set it" }
                    button formmethod="get" formaction="/alarms/new" formnovalidate { "Show its fires" }
                    a.button.plain href="/alarms" { "Leave it" }
                }
            }
            (preview)
        }
    };
    Ok(Page::new("Set an alarm", body))
}

/// What the form of an alarm says while nobody has typed anything.
fn said_by(alarm: &Alarm, tag: Option<String>) -> Fields {
    let mut pairs = vec![
        ("label", alarm.label.clone()),
        ("cron", alarm.cron_expr.clone().unwrap_or_default()),
        ("civil", alarm.civil_at.clone().unwrap_or_default()),
        ("zone", alarm.timezone.clone().unwrap_or_default()),
        ("dst", alarm.dst.to_string()),
        ("misfire", alarm.misfire.to_string()),
        ("overlap", alarm.overlap.to_string()),
        ("target", alarm.target_url.clone().unwrap_or_default()),
        ("message", alarm.message.clone().unwrap_or_default()),
        (
            "payload",
            alarm
                .payload
                .as_ref()
                .map(|payload| payload.get().to_owned())
                .unwrap_or_default(),
        ),
        ("tag", tag.unwrap_or_default()),
    ];
    pairs.extend(alarm.pause_after.map(|after| ("pause_after", after.to_string())));
    Fields::from_pairs(
        pairs
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text))
            .collect(),
    )
}

pub(super) async fn edit(visitor: Visitor, Path(id): Path<String>, fields: Fields) -> Answer {
    edit_form(&visitor, &id, &fields, None).await
}

/// An alarm to be changed: as it is, or as it was typed; bound to the alarm that was seen.
pub(super) async fn edit_form(
    visitor: &Visitor,
    id: &str,
    typed: &Fields,
    wrong: Option<&Trouble>,
) -> Answer {
    allowed(visitor, "change-alarm")?;
    let (details, tag) = visitor
        .client
        .with_tag(async |client| client.alarm(id).await)
        .await?;
    let alarm = &details.alarm;
    let begun = typed.get("tag").is_some();
    let fields = if begun { typed.clone() } else { said_by(alarm, tag) };
    let preview = preview(visitor, &fields).await?;
    let path = format!("/alarms/{}", alarm.id);
    let body = html! {
        header.page { h1 { "Change " (called(alarm)) } }
        @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong.words) } }
        div.columns {
            form.sheet #alarm-form method="post" action="/act/change-alarm" data-preview=(format!("{path}/edit")) {
                input type="hidden" name="back" value=(path);
                input type="hidden" name="id" value=(alarm.id);
                input type="hidden" name="tag" value=(fields.get("tag").unwrap_or_default());
                (sheet(&fields))
                div.actions {
                    button.primary { "Change it" }
                    button formmethod="get" formaction=(format!("{path}/edit")) formnovalidate { "Show its fires" }
                    a.button.plain href=(path) { "Leave it" }
                }
            }
            (preview)
        }
    };
    Ok(Page::new(format!("Change {}", called(alarm)), body))
}
