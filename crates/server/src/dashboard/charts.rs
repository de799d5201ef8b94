//! Pictures of numbers over time, as SVG that the style sheet colours. Each says in words what it shows, for whoever does not see it.

#![expect(
    clippy::cast_precision_loss,
    reason = "what is drawn or told to people needs no more digits"
)]

use std::fmt::Write as _;

use jiff::Timestamp;
use maud::{Markup, html};

/// One line, or one layer, of a chart.
pub(super) struct Series {
    pub(super) name: &'static str,
    /// The class that gives the colour.
    pub(super) class: &'static str,
    pub(super) values: Vec<f64>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 120.0;
/// Instants of a line that can be pointed at, at most.
const POINTED: usize = 60;

/// A round number that everything fits below.
fn ceiling(most: f64) -> f64 {
    if most <= 1.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let found = steps.iter().map(|step| step * power).find(|top| *top >= most);
    found.unwrap_or(power * 10.0)
}

/// A number with as many digits as tell something.
pub(super) fn figure(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => format!("{:.0}k", v / 1000.0),
        v if v >= 1000.0 => format!("{:.1}k", v / 1000.0),
        v if (v - v.round()).abs() < 0.005 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}").trim_end_matches('0').to_owned(),
    }
}

/// Bars above each other, one place for each minute.
pub(super) fn bars(title: &str, unit: &str, times: &[Timestamp], layers: &[Series]) -> Markup {
    let sums: Vec<f64> = (0..times.len())
        .map(|at| layers.iter().filter_map(|layer| layer.values.get(at)).sum())
        .collect();
    let top = ceiling(sums.iter().copied().fold(0.0, f64::max));
    let step = WIDTH / (times.len().max(1) as f64);
    let scale = (HEIGHT - 6.0) / top;
    let bars = times.iter().enumerate().map(|(at, time)| {
        let mut floor = HEIGHT;
        let parts: Vec<_> = layers
            .iter()
            .filter_map(|layer| {
                let value = layer.values.get(at).copied().filter(|value| *value > 0.0)?;
                floor -= value * scale;
                Some((layer.class, floor, value * scale))
            })
            .collect();
        (step * (at as f64), parts, time, told(time, at, layers))
    });
    html! {
        (figure_of(title, unit, top, times, layers, &sums, &html! {
            @for (x, parts, time, told) in bars {
                g data-at=(time) {
                    title { (told) }
                    rect.hit x=(two(x)) y="0" width=(two(step)) height=(two(HEIGHT)) {}
                    @for (class, y, height) in parts {
                        rect class=(class) x=(two(x + step * 0.12)) y=(two(y)) width=(two(step * 0.76)) height=(two(height)) {}
                    }
                }
            }
        }))
    }
}

/// What a chart shows of one instant, in words; nothing of what is not known. The script tells the time in the zone that was chosen.
fn told(time: &Timestamp, at: usize, series: &[Series]) -> String {
    let known = series.iter().filter_map(|line| {
        let value = line.values.get(at).copied().filter(|value| value.is_finite())?;
        Some(format!("{} {}", figure(value), line.name))
    });
    let known: Vec<String> = known.collect();
    let known = if known.is_empty() {
        "nothing is known".to_owned()
    } else {
        known.join(", ")
    };
    format!("{} UTC: {known}", time.strftime("%d.%m. %H:%M"))
}

/// Lines beside each other.
pub(super) fn lines(title: &str, unit: &str, times: &[Timestamp], series: &[Series]) -> Markup {
    let all = series.iter().flat_map(|line| line.values.iter().copied());
    let top = ceiling(all.filter(|value| value.is_finite()).fold(0.0, f64::max));
    let step = WIDTH / (times.len().saturating_sub(1).max(1) as f64);
    let path = |line: &Series| {
        let mut path = String::new();
        let mut pen_down = false;
        for (at, value) in line.values.iter().enumerate() {
            if value.is_finite() {
                let (x, y) = (step * (at as f64), HEIGHT - value * (HEIGHT - 6.0) / top);
                let pen = if pen_down { 'L' } else { 'M' };
                let _ = write!(path, "{pen}{} {}", two(x), two(y));
                let goes_on = line.values.get(at + 1).is_some_and(|next| next.is_finite());
                if !pen_down && !goes_on {
                    // One minute alone is a point.
                    path.push_str("h.1");
                }
            }
            // A minute of which nothing is known is a gap and no zero.
            pen_down = value.is_finite();
        }
        path
    };
    let all: Vec<f64> = series
        .iter()
        .flat_map(|line| line.values.iter().copied())
        .filter(|value| value.is_finite())
        .collect();
    let last = series
        .first()
        .and_then(|line| line.values.iter().rev().find(|value| value.is_finite()));
    let all: Vec<f64> = all.into_iter().chain(last.copied()).collect();
    // Of very many instants not each can be pointed at.
    let every = times.len().div_ceil(POINTED).max(1);
    figure_of(
        title,
        unit,
        top,
        times,
        series,
        &all,
        &html! {
            @for line in series { path.line.(line.class) d=(path(line)) {} }
            // Each instant tells its values to whoever points at it.
            @let reach = step * (every as f64);
            @for (at, time) in times.iter().enumerate().step_by(every) {
                g data-at=(time) { title { (told(time, at, series)) } rect.hit x=(two((step * (at as f64) - reach / 2.0).max(0.0))) y="0" width=(two(reach)) height=(two(HEIGHT)) {} }
            }
        },
    )
}

fn figure_of(
    title: &str,
    unit: &str,
    top: f64,
    times: &[Timestamp],
    series: &[Series],
    told: &[f64],
    inside: &Markup,
) -> Markup {
    let (most, now) = (
        told.iter().copied().fold(0.0, f64::max),
        told.last().copied().unwrap_or_default(),
    );
    let words = format!(
        "{title}: {} {unit} at most, {} at last",
        figure(most),
        figure(now)
    );
    let ends = [times.first(), times.get(times.len() / 2), times.last()];
    // Where it goes over days, hours alone say little.
    let days = times
        .first()
        .zip(times.last())
        .is_some_and(|(first, last)| last.as_second() - first.as_second() > 86_400);
    let (class, format) = if days {
        ("day", "%a %d. %H:%M")
    } else {
        ("clock", "%H:%M")
    };
    html! {
        figure.chart {
            figcaption {
                strong { (title) } " " span.quiet { (unit) }
                @if series.len() > 1 {
                    span.legend { @for line in series { span.key.(line.class) { (line.name) } } }
                }
            }
            div.plot {
                div.y aria-hidden="true" { @for part in [1.0, 0.5, 0.0] { span { (figure(top * part)) } } }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(words) preserveAspectRatio="none" {
                    @for part in [0.0, 0.5, 1.0] { path.grid d=(format!("M0 {}H{WIDTH}", two(HEIGHT - part * (HEIGHT - 6.0)))) {} }
                    (inside)
                }
                div.x aria-hidden="true" { @for at in ends.into_iter().flatten() { time.(class) datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()) { (at.strftime(format).to_string()) } } }
            }
        }
    }
}

/// A small line of how often something happened.
pub(super) fn spark(values: &[u32], part: &str) -> Markup {
    let most = f64::from(values.iter().copied().max().unwrap_or(1).max(1));
    html! {
        svg.spark viewBox="0 0 120 24" width="120" height="24" role="img" aria-label=(format!("at most {most} {part}")) {
            rect.bad.faint x="0" y="23" width="120" height="1" {}
            @for (at, value) in values.iter().enumerate().filter(|(_, value)| **value > 0) {
                @let step = 120.0 / (values.len().max(1) as f64);
                @let height = (f64::from(*value) / most * 22.0).max(3.0);
                rect.bad x=(two(step * (at as f64))) y=(two(24.0 - height)) width=(two(step * 0.75)) height=(two(height)) {}
            }
        }
    }
}

/// Instants in so many equal parts of the time between the first and the last.
pub(super) fn parts(times: &[Timestamp], count: usize) -> Vec<u32> {
    let mut parts = vec![0; count];
    let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else {
        return parts;
    };
    let whole = (last.as_second() - first.as_second()).max(1);
    for time in times {
        let at = (time.as_second() - first.as_second()) * i64::try_from(count).unwrap_or(1) / (whole + 1);
        if let Some(part) = usize::try_from(at).ok().and_then(|at| parts.get_mut(at)) {
            *part += 1;
        }
    }
    parts
}

fn two(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(ToOwned::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_fits_below_a_round_number() {
        for (most, top) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (3.0, 5.0),
            (17.0, 20.0),
            (21.0, 25.0),
            (240.0, 250.0),
            (999.0, 1000.0),
        ] {
            assert!((ceiling(most) - top).abs() < 1e-9, "{most}: {}", ceiling(most));
        }
    }

    #[test]
    fn a_minute_of_which_nothing_is_known_is_a_gap() {
        let times: Vec<Timestamp> = (0..4)
            .map(|at| Timestamp::from_second(at * 60).unwrap())
            .collect();
        let line = Series {
            name: "a",
            class: "good",
            values: vec![1.0, f64::NAN, 1.0, 1.0],
        };
        let picture = lines("Latency", "s", &times, &[line]).into_string();
        assert_eq!(picture.matches("M0 ").count(), 1 + 3, "{picture}");
        assert!(picture.contains("h.1M426.7"), "{picture}");
    }

    #[test]
    fn instants_are_counted_in_the_part_that_they_fall_into() {
        let times: Vec<Timestamp> = [0, 1, 50, 99]
            .iter()
            .map(|at| Timestamp::from_second(*at).unwrap())
            .collect();
        assert_eq!(parts(&times, 4), [2, 0, 1, 1]);
        assert_eq!(parts(&[], 2), [0, 0]);
    }
}
