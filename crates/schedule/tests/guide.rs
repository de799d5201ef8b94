//! The tables of the guide are true.

use jiff::Timestamp;
use stationmaster_schedule::{Cron, Series, zone, zone_data_version};

const GUIDE: &str = include_str!("../../../docs/guides/alarms-and-dst.md");

/// The rows of the table whose header begins so.
fn rows(header: &str) -> Vec<Vec<String>> {
    let lines = GUIDE.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let lines = lines.take_while(|line| line.starts_with('|'));
    let cell = |cell: &str| cell.trim().to_owned();
    lines
        .map(|line| line.trim_matches('|').split(" |").map(cell).collect())
        .collect()
}

fn bare(cell: &str) -> &str {
    cell.trim_matches('`')
}

#[test]
fn expressions_have_the_words_of_the_guide() {
    let rows = rows("| expression | in words");
    assert_eq!(rows.len(), 11);
    for row in rows {
        assert_eq!(Cron::parse(bare(&row[0])).unwrap().describe(), row[1]);
    }
}

#[test]
fn refusals_have_the_places_and_reasons_of_the_guide() {
    let rows = rows("| refused |");
    assert_eq!(rows.len(), 5);
    for row in rows {
        let text = bare(&row[0]);
        let error = Cron::parse(text).unwrap_err();
        assert_eq!(
            (&text[error.at], error.message.as_str()),
            (bare(&row[1]), row[2].as_str())
        );
    }
}

#[test]
fn fires_are_those_of_the_guide() {
    let rows = rows("| expression | policy");
    assert_eq!(rows.len(), 12);
    for row in rows {
        let instant = |text: &str| text.parse::<Timestamp>().unwrap();
        let series = Series {
            cron: Cron::parse(bare(&row[0])).unwrap(),
            dst: bare(&row[1]).parse().unwrap(),
            zone: zone(&row[2]).unwrap(),
            start: None,
            end: Some(instant(&row[4])),
            anchor: Timestamp::UNIX_EPOCH,
        };
        let fires: Vec<String> = series
            .fires(instant(&row[3]))
            .map(|fire| fire.rfc3339())
            .collect();
        assert_eq!(fires.join(", "), row[5], "{row:?}");
    }
}

#[test]
fn the_example_at_the_top_is_what_is_computed() {
    let cron = Cron::parse("30 2 * * *").unwrap();
    assert!(GUIDE.contains(&format!(
        "\n{}\n30 2 * * * in America/New_York, zone data",
        cron.describe()
    )));
    let series = Series {
        cron,
        zone: zone("America/New_York").unwrap(),
        dst: "vixie".parse().unwrap(),
        start: None,
        end: None,
        anchor: Timestamp::UNIX_EPOCH,
    };
    for fire in series.fires("2024-03-09T00:00:00Z".parse().unwrap()).take(3) {
        let note = fire
            .note
            .as_ref()
            .map(|note| format!("  {note}"))
            .unwrap_or_default();
        let line = format!("\n{}{note}\n", fire.rfc3339());
        assert!(GUIDE.contains(&line), "{line}");
    }
    assert!(GUIDE.contains(&format!("zone data {},", zone_data_version())));
}
