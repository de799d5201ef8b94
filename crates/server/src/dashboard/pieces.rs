//! Pieces that pages are made of.

#![expect(
    clippy::cast_precision_loss,
    reason = "what is drawn or told to people needs no more digits"
)]

use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::value::RawValue;
use stationmaster_client::wire::{
    AlarmStatus, ExecutionStatus, ItemStatus, OccurrenceStatus, SignalStatus, Waiting,
};
use uuid::Uuid;

use super::fields::{Fields, address, segment};
use super::json;

/// A time: exact in the page, and as the reader wants it once the script has seen it.
pub(super) fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()) { (at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()) } }
}

/// A time that may not be there.
pub(super) fn maybe_time(at: Option<Timestamp>) -> Markup {
    html! { @if let Some(at) = at { (time(at)) } @else { span.quiet { "–" } } }
}

/// How long something took, or has taken until now; the script keeps the latter going.
pub(super) fn took(from: Option<Timestamp>, to: Option<Timestamp>) -> Markup {
    match (from, to) {
        (Some(from), Some(to)) => {
            html! { (span_of((to.as_millisecond() - from.as_millisecond()) as f64 / 1000.0)) }
        }
        (Some(from), None) => html! { "for " (since(from)) },
        _ => html! { span.quiet { "–" } },
    }
}

/// A time that is told as how long ago it was, whatever the reader wants.
pub(super) fn since(at: Timestamp) -> Markup {
    html! { time.since datetime=(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()) { (at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()) } }
}

/// A time that is expected: once it has passed it is now.
pub(super) fn due(at: Timestamp) -> Markup {
    html! { time.due datetime=(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()) { (at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()) } }
}

/// Seconds in words.
pub(super) fn span_of(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", (s * 1000.0).max(0.0)),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{:.0} min {:.0} s", (s / 60.0).floor(), s % 60.0),
        s if s < 86_400.0 => format!("{:.0} h {:.0} min", (s / 3600.0).floor(), (s % 3600.0) / 60.0),
        s => format!("{:.0} d {:.0} h", (s / 86_400.0).floor(), (s % 86_400.0) / 3600.0),
    }
}

/// A lamp and its word.
pub(super) fn lamp(class: &str, word: &str) -> Markup {
    html! { span.lamp.(class) { (word) } }
}

pub(super) fn execution_lamp(status: ExecutionStatus) -> Markup {
    lamp(execution_class(status), status.as_str())
}

pub(super) fn execution_class(status: ExecutionStatus) -> &'static str {
    match status {
        ExecutionStatus::Pending => "wait",
        ExecutionStatus::Starting | ExecutionStatus::Running => "busy",
        ExecutionStatus::Completed => "good",
        ExecutionStatus::Failed | ExecutionStatus::TimedOut | ExecutionStatus::Terminated => "bad",
        ExecutionStatus::Cancelled => "off",
    }
}

/// Of an item that was dispatched, its execution tells more.
pub(super) fn item_lamp(status: ItemStatus, outcome: Option<ExecutionStatus>) -> Markup {
    match (status, outcome) {
        (ItemStatus::Dispatched, Some(outcome)) => execution_lamp(outcome),
        (ItemStatus::Dispatched, None) => lamp("busy", "RUNNING"),
        (ItemStatus::Pending, _) => lamp("wait", "PENDING"),
        (ItemStatus::Claimed, _) => lamp("busy", "CLAIMED"),
        (ItemStatus::Failed, _) => lamp("bad", "FAILED"),
        (ItemStatus::Cancelled, _) => lamp("off", "CANCELLED"),
    }
}

pub(super) fn alarm_lamp(status: AlarmStatus) -> Markup {
    let class = match status {
        AlarmStatus::Active => "good",
        AlarmStatus::Paused => "wait",
        AlarmStatus::Fired | AlarmStatus::Cancelled => "off",
        AlarmStatus::Failed => "bad",
    };
    lamp(class, status.as_str())
}

pub(super) fn occurrence_lamp(status: OccurrenceStatus) -> Markup {
    let class = match status {
        OccurrenceStatus::Pending | OccurrenceStatus::Retrying => "wait",
        OccurrenceStatus::Claimed => "busy",
        OccurrenceStatus::Fired => "good",
        OccurrenceStatus::Failed => "bad",
        OccurrenceStatus::Skipped | OccurrenceStatus::Coalesced | OccurrenceStatus::Cancelled => "off",
    };
    lamp(class, status.as_str())
}

pub(super) fn signal_lamp(status: SignalStatus) -> Markup {
    let class = match status {
        SignalStatus::Pending => "wait",
        SignalStatus::Routed => "good",
        SignalStatus::Dead => "bad",
    };
    lamp(class, status.as_str())
}

/// As much of an id as tells it from its neighbours.
pub(super) fn short(id: Uuid) -> String {
    let text = id.to_string();
    // The beginning is the time, the end is chance.
    format!("{}…{}", &text[..8], &text[text.len() - 4..])
}

pub(super) fn item_link(id: Uuid) -> Markup {
    html! { a.id href=(format!("/queue/{id}")) title=(id) { (short(id)) } }
}

pub(super) fn execution_link(id: Uuid) -> Markup {
    html! { a.id href=(format!("/executions/{id}")) title=(id) { (short(id)) } }
}

pub(super) fn workspace_link(name: Option<&str>, id: Uuid) -> Markup {
    html! {
        @if let Some(name) = name { a href=(format!("/workspaces/{}", segment(name))) { (name) } }
        @else { span.id.quiet title="It is gone" { (short(id)) } }
    }
}

pub(super) fn workflow_link(name: Option<&str>, id: Uuid) -> Markup {
    html! {
        @if let Some(name) = name { a href=(format!("/workflows/{id}")) { (name) } }
        @else { span.id.quiet title="It is gone" { (short(id)) } }
    }
}

/// JSON as it was written, to be read and copied.
pub(super) fn document(title: &str, value: Option<&RawValue>) -> Markup {
    html! {
        section.document {
            h3 { (title) @if value.is_some() { " " (copy("Copy")) } }
            @match value {
                Some(value) => pre tabindex="0" { code.copied { (json::pretty(value.get())) } },
                None => p.quiet { "none" },
            }
        }
    }
}

/// Copies what stands beside it; without the script it is not there.
pub(super) fn copy(word: &str) -> Markup {
    html! { button.copy.plain type="button" hidden { (word) } }
}

/// A line to be copied into a shell.
pub(super) fn line(title: &str, text: &str) -> Markup {
    html! { div.shell { span.quiet { (title) } " " code.copied { (text) } " " (copy("Copy")) } }
}

/// Text for a shell, as one word.
pub(super) fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@=,+".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A way to an action, which looks first.
pub(super) fn act(word: &str, action: &str, pairs: &[(&str, &str)], back: &str) -> Markup {
    let mut all = pairs.to_vec();
    all.push(("back", back));
    html! { a.button href=(address(&format!("/act/{action}"), &all)) { (word) "…" } }
}

/// The words of a reason to wait.
pub(super) fn waiting(waiting: &Waiting) -> Markup {
    html! {
        @match waiting {
            Waiting::Scheduled { until: Some(until) } => { "its time comes at " (time(*until)) },
            Waiting::Scheduled { until: None } => { "its time has not come" },
            Waiting::BackingOff { until, error } => {
                "backing off" @if let Some(until) = until { " until " (time(*until)) }
                @if let Some(error) = error { ": " (error) }
            },
            Waiting::WorkspacePaused => { "its workspace is paused" },
            Waiting::DefinitionPaused => { "its workflow is paused" },
            Waiting::NoServer => { "no server takes work: " code { "stationmaster serve" } " starts one" },
            Waiting::EngineDown => { "the engine is away; servers go on as soon as it is back" },
            Waiting::Limit { limit, active, .. } => { "the workspace is full: " (active) " of " (limit) " slots are in use" },
            Waiting::Queued { .. } => { "it stands in line" },
        }
    }
}

/// A count that somebody stopped at a bound.
pub(super) fn counted(count: i64, bound: i64) -> String {
    if count > bound {
        format!("over {}", grouped(bound))
    } else {
        grouped(count)
    }
}

/// A number with its thousands apart.
pub(super) fn grouped(count: i64) -> String {
    let digits = count.unsigned_abs().to_string();
    let mut text = String::from(if count < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count behind which there may be more: at least so many, in one digit.
pub(super) fn at_least(count: i64) -> String {
    let place = 10_i64.pow(count.max(1).ilog10());
    format!("{}+", grouped(count / place * place))
}

/// How many of something.
pub(super) fn many(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let end = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{end}")
}

/// Nothing to show, and why that may be.
pub(super) fn nothing(words: &str) -> Markup {
    html! { p.nothing { (words) } }
}

/// A page of a list on which nothing is: a search looks at so many, and there may be more.
pub(super) fn none_found(more: bool) -> Markup {
    nothing(if more {
        "Nothing among those that were looked at so far: the next page looks further."
    } else {
        "Nothing matches."
    })
}

/// A filter: a field of the form above a list.
pub(super) enum Filter<'a> {
    /// One of these, or any.
    Choice(&'a str, &'a str, &'a [(&'a str, &'a str)]),
    /// The name of one of these, completed as one types.
    Name(&'a str, &'a str, &'a str),
    /// A text to be searched for.
    Text(&'a str, &'a str),
}

/// Since when, as people say it.
pub(super) const SINCE: [(&str, &str); 6] = [
    ("15m", "last 15 minutes"),
    ("1h", "last hour"),
    ("6h", "last 6 hours"),
    ("24h", "last day"),
    ("7d", "last week"),
    ("30d", "last 30 days"),
];

/// The instant that such words mean now, to the minute, so that a page asked for again asks for the same.
pub(super) fn since_then(fields: &Fields) -> Option<Timestamp> {
    let minutes = match fields.get("since")? {
        "15m" => 15,
        "1h" => 60,
        "6h" => 360,
        "24h" => 24 * 60,
        "7d" => 7 * 24 * 60,
        "30d" => 30 * 24 * 60,
        _ => return None,
    };
    let now = Timestamp::now().as_second() / 60;
    Timestamp::from_second((now - minutes) * 60).ok()
}

/// The form of filters: what is chosen is in the address, and nowhere else.
pub(super) fn filters(path: &str, fields: &Fields, filters: &[Filter<'_>]) -> Markup {
    let names: Vec<&str> = filters
        .iter()
        .map(|filter| {
            let (Filter::Choice(name, ..) | Filter::Name(name, ..) | Filter::Text(name, _)) = filter;
            *name
        })
        .collect();
    let set = names.iter().any(|name| fields.get(name).is_some());
    html! {
        form.filters action=(path) role="search" aria-label="Filters" {
            @for filter in filters {
                @match filter {
                    Filter::Choice(name, label, words) => label { (label)
                        select name=(name) {
                            option value="" { "any" }
                            @for (value, word) in *words { option value=(value) selected[fields.get(name) == Some(value)] { (word) } }
                        }
                    },
                    Filter::Name(name, label, noun) => label { (label)
                        input name=(name) value=[fields.get(name)] autocomplete="off" data-complete=(noun) list=(format!("names-{name}"));
                        datalist id=(format!("names-{name}")) {}
                    },
                    Filter::Text(name, label) => label { (label)
                        input name=(name) type="search" value=[fields.get(name)] maxlength="200";
                    },
                }
            }
            @if let Some(since) = fields.get("since").filter(|_| !names.contains(&"since")) { input type="hidden" name="since" value=(since); }
            @if let Some(sort) = fields.get("sort") { input type="hidden" name="sort" value=(sort); }
            button { "Filter" }
            // Said and not only left out: the time would stay.
            @if set { a.button.plain href=(if fields.get("since").is_some() { format!("{path}?since=") } else { path.to_owned() }) { "Clear" } }
        }
    }
}

/// The way to the next page of a list, with the same filters.
pub(super) fn pager(path: &str, fields: &Fields, kept: &[&str], next: Option<&str>) -> Markup {
    let mut pairs = fields.only(kept);
    if !kept.contains(&"since") {
        pairs.extend(fields.only(&["since"]));
    }
    html! {
        @if next.is_some() || fields.get("cursor").is_some() {
            nav.pager aria-label="Pages of the list" {
                @if fields.get("cursor").is_some() { a.button href=(address(path, &pairs)) { "First page" } }
                @if let Some(next) = next {
                    @let onward = { let mut onward = pairs.clone(); onward.push(("cursor".to_owned(), next.to_owned())); onward };
                    a.button rel="next" href=(address(path, &onward)) { "Next page" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        assert_eq!(quoted("acme.nightly-report"), "acme.nightly-report");
        assert_eq!(quoted("it's $(rm)"), r"'it'\''s $(rm)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn thousands_stand_apart() {
        let told = [0, 999, 1_000, 10_000, 1_234_567, -4_000].map(grouped);
        assert_eq!(told, ["0", "999", "1,000", "10,000", "1,234,567", "-4,000"]);
        assert_eq!(
            [0, 7, 997, 1_027, 10_000].map(at_least),
            ["0+", "7+", "900+", "1,000+", "10,000+"]
        );
    }

    #[test]
    fn lengths_of_time_are_told_as_exactly_as_they_matter() {
        let told = [0.0421, 2.5, 61.0, 3700.0, 100_000.0].map(span_of);
        assert_eq!(told, ["42 ms", "2.5 s", "1 min 1 s", "1 h 2 min", "1 d 4 h"]);
    }
}
