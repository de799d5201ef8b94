//! What happened over time, as charts: of everything, of a workspace, of a workflow.

#![expect(
    clippy::cast_precision_loss,
    reason = "what is drawn or told to people needs no more digits"
)]

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use stationmaster_client::Error;
use stationmaster_client::wire::{HistoryChart, HistoryPoint, HistoryQuery, Reference};

use super::charts::{self, Series};
use super::fields::{Fields, address};
use super::session::Visitor;

/// How far back, as the address says it, in words, and in minutes.
const RANGES: [(&str, &str, i64); 5] = [
    ("15m", "15 min", 15),
    ("1h", "1 h", 60),
    ("6h", "6 h", 360),
    ("24h", "24 h", 24 * 60),
    ("7d", "7 d", 7 * 24 * 60),
];

/// What is drawn.
pub(super) struct Drawn<'a> {
    /// The page that the charts are on.
    pub(super) path: &'a str,
    pub(super) workspace: Option<Reference>,
    pub(super) workflow: Option<Reference>,
    /// Only what this server had in hand.
    pub(super) server: Option<Reference>,
    /// A limit to hold the slots in use against.
    pub(super) limit: Option<i32>,
}

/// The charts of a page, over the time that its address asks for.
pub(super) async fn draw(visitor: &Visitor, fields: &Fields, drawn: Drawn<'_>) -> Result<Markup, Error> {
    // Lists go back further than minutes are drawn.
    let asked = fields
        .get("since")
        .map_or("1h", |since| if since == "30d" { "7d" } else { since });
    let (range, _, minutes) = RANGES
        .iter()
        .find(|(range, ..)| *range == asked)
        .unwrap_or(&RANGES[1]);
    // Whole minutes, so that a page that is asked for again asks for the same.
    let to = Timestamp::from_second(Timestamp::now().as_second() / 60 * 60).unwrap_or_default();
    let query = HistoryQuery {
        from: to.checked_sub(SignedDuration::from_mins(*minutes)).ok(),
        to: Some(to),
        workspace: drawn.workspace.clone(),
        workflow: drawn.workflow.clone(),
        server: drawn.server.clone(),
        step: None,
    };
    let chart = visitor.client.history_chart(&query).await?;
    Ok(html! {
        div.range role="group" aria-label="How far back" {
            @for (value, word, _) in RANGES {
                @let pairs = { let mut pairs = fields.only(&["workspace", "workflow", "server"]); pairs.push(("since".to_owned(), value.to_owned())); pairs };
                a href=(address(drawn.path, &pairs)) aria-current=[(value == *range).then_some("true")] { (word) }
            }
        }
        @if let Some(limit) = drawn.limit { (helped(&chart, limit, range)) }
        (figures(chart, drawn.limit))
    })
}

/// Would a higher limit have helped? What the minutes of the time that is shown say.
fn helped(chart: &HistoryChart, limit: i32, range: &str) -> Markup {
    let until = chart.counted_until.unwrap_or(chart.from);
    let points: Vec<&HistoryPoint> = chart.points.iter().filter(|point| point.at < until).collect();
    let most = points.iter().filter_map(|point| point.active).max();
    let is_full = |point: &&&HistoryPoint| {
        point.active.is_some_and(|active| active >= i64::from(limit))
            && point.waiting.is_some_and(|waiting| waiting > 0)
    };
    let full = points.iter().filter(is_full).count();
    let waited = points
        .iter()
        .filter_map(|point| point.waiting)
        .max()
        .unwrap_or_default();
    let known = points.iter().filter(|point| point.active.is_some()).count();
    let step = chart.step_seconds / 60;
    let told = match RANGES.iter().find(|(value, ..)| *value == range) {
        Some((_, word, _)) => *word,
        None => range,
    };
    html! {
        p.helped {
            @if limit == 0 { "Its limit is 0: nothing may run." }
            @else if let Some(most) = most {
                @if full > 0 && step > 1 {
                    // Of several minutes the most is known, and not whether it was at once.
                    strong { "A higher plan may have helped: " }
                    "in the last " (told) " all " (limit) " slots were in use and work waited at some time in " (full) " of " (known) " stretches of " (step) " minutes, with up to " (waited) " waiting. A shorter time tells it by the minute."
                } @else if full > 0 {
                    strong { "A higher plan would have helped: " }
                    "in the last " (told) " all " (limit) " slots were in use while work waited at " (full) " of " (known) " minutes that are known, with up to " (waited) " waiting."
                } @else {
                    strong { "A higher plan would not have helped: " }
                    "in the last " (told) " at most " (most) " of " (limit) " slots were in use" @if most >= i64::from(limit) { ", and nothing waited for one" } "."
                }
            } @else { "Nothing ran in the last " (told) ", so a higher plan would not have helped." }
        }
    }
}

fn figures(mut chart: HistoryChart, limit: Option<i32>) -> Markup {
    // What is not counted yet is not nothing.
    let until = chart.counted_until.unwrap_or(chart.from);
    chart.points.retain(|point| point.at < until);
    let points = &chart.points;
    let times: Vec<Timestamp> = points.iter().map(|point| point.at).collect();
    let values = |of: &dyn Fn(&HistoryPoint) -> Option<f64>| -> Vec<f64> {
        points.iter().map(|point| of(point).unwrap_or(f64::NAN)).collect()
    };
    let line = |name, class, values| Series { name, class, values };
    let step = match chart.step_seconds / 60 {
        1 => "a minute".to_owned(),
        minutes if minutes % 60 == 0 => format!("in {} h", minutes / 60),
        minutes => format!("in {minutes} min"),
    };
    let ended = [
        line("completed", "good", values(&|point| Some(point.completed as f64))),
        line("cancelled", "off", values(&|point| Some(point.cancelled as f64))),
        line(
            "failed",
            "bad",
            values(&|point| Some((point.failed + point.terminated + point.timed_out) as f64)),
        ),
    ];
    let mut depth = vec![
        line(
            "slots in use",
            "busy",
            values(&|point| point.active.map(|count| count as f64)),
        ),
        line(
            "waiting",
            "wait",
            values(&|point| point.waiting.map(|count| count as f64)),
        ),
    ];
    if let Some(limit) = limit {
        depth.push(line("limit", "limit", vec![f64::from(limit); points.len()]));
    }
    let spread = |of: fn(&HistoryPoint) -> Option<stationmaster_client::wire::Spread>| {
        [
            line(
                "half of them",
                "busy",
                values(&|point| of(point).map(|spread| spread.p50)),
            ),
            line(
                "19 of 20",
                "wait",
                values(&|point| of(point).map(|spread| spread.p95)),
            ),
        ]
    };
    html! {
        @if points.is_empty() { (super::pieces::nothing("The first minute is still being counted.")) }
        @else {
            div.charts {
                (charts::bars("Ended", &format!("executions {step}"), &times, &ended))
                (charts::lines("Queue and slots", "at minutes' ends", &times, &depth))
                (charts::lines("Enqueued to started", "seconds", &times, &spread(|point| point.wait)))
                (charts::lines("Started to ended", "seconds", &times, &spread(|point| point.run)))
            }
        }
    }
}
