//! Words into values. Pure. An error says what is wrong with the words; what would be right stands in the table.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use stationmaster_core::hosts;
use stationmaster_core::signals::MAX_NAME;
use stationmaster_core::wake::signature::Secret;
use tracing_subscriber::EnvFilter;
use url::Url;

/// What came of reading, or what is wrong with the words.
pub(super) type Parsed<T> = Result<T, String>;

/// Nothing that we wait for takes longer, and every sum of two such times still fits everywhere.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

pub(super) fn number<T: FromStr + PartialOrd + Display>(text: &str, range: RangeInclusive<T>) -> Parsed<T> {
    let number: T = text
        .trim()
        .parse()
        .map_err(|_| format!("{text:?} is not a number in the range"))?;
    if range.contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is out of range"))
    }
}

pub(super) fn boolean(text: &str) -> Parsed<bool> {
    text.trim()
        .parse()
        .map_err(|_| format!("{text:?} is neither true nor false"))
}

/// A time that passes, such as `250ms`, `5s`, `1h 30m` or `7d`. Days have 24 hours.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let unreadable = || format!("{text:?} is not a duration");
    let span: Span = text.trim().parse().map_err(|_| unreadable())?;
    let signed = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| unreadable())?;
    let duration = Duration::try_from(signed).map_err(|_| format!("{text:?} is less than nothing"))?;
    if duration.is_zero() {
        return Err(format!("{text:?} is no time at all"));
    }
    if duration > LONGEST {
        Err(format!("{text:?} is more than ten years"))
    } else {
        Ok(duration)
    }
}

/// The same within bounds.
pub(super) fn duration_between(text: &str, range: RangeInclusive<Duration>) -> Parsed<Duration> {
    let duration = duration(text)?;
    if range.contains(&duration) {
        Ok(duration)
    } else {
        Err(format!("{text:?} is out of range"))
    }
}

/// Several things with commas between them.
pub(super) fn list<T: FromStr<Err = String>>(text: &str) -> Parsed<Vec<T>> {
    text.split(',').map(|part| part.trim().parse()).collect()
}

/// One word of a few.
pub(super) fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Parsed<T> {
    let found = choices.iter().find(|(word, _)| *word == text.trim());
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("there is no {text:?} to choose"))
}

/// A part of a whole.
pub(super) fn share(text: &str) -> Parsed<f64> {
    match text.trim().parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it is not a number from 0 to 1".to_owned()),
    }
}

/// Words that are not empty.
pub(super) fn words(text: &str) -> Parsed<String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.contains(char::is_control) {
        Err("it holds a control character".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

pub(super) fn path(text: &str) -> Parsed<PathBuf> {
    words(text).map(PathBuf::from)
}

/// A URL with one of these schemes, perhaps with several hosts. The words may hold a password, so they are never repeated.
pub(super) fn url(text: &str, schemes: &[&str]) -> Parsed<String> {
    for text in hosts::each(text) {
        let url = Url::parse(&text).map_err(|error| format!("it is not a URL: {error}"))?;
        if !schemes.contains(&url.scheme()) || url.cannot_be_a_base() {
            return Err(format!("it does not begin with {}://", schemes.join(":// or ")));
        }
    }
    Ok(text.to_owned())
}

/// Projects and their task queues: `shop/default, crm/night`.
pub(super) fn pairs(text: &str) -> Parsed<Vec<(String, String)>> {
    let pair = |part: &str| {
        let (project, task_queue) = part
            .split_once('/')
            .ok_or_else(|| format!("{part:?} has no slash"))?;
        let bad = |name: &str| name.is_empty() || name.chars().count() > MAX_NAME;
        if bad(project) || bad(task_queue) {
            return Err(format!(
                "{part:?} has a name that is empty or longer than {MAX_NAME} characters"
            ));
        }
        Ok((project.to_owned(), task_queue.to_owned()))
    };
    words(text)?;
    text.split(',').map(|part| pair(part.trim())).collect()
}

/// A key that signs webhooks. Its words are never repeated.
pub(super) fn webhook_secret(text: &str) -> Parsed<Secret> {
    let key = text.trim();
    // The prefix may be left out.
    let key = key.strip_prefix("whsec_").unwrap_or(key);
    Secret::parse(&format!("whsec_{key}"))
}

/// An address to listen on.
pub(super) fn address(text: &str) -> Parsed<SocketAddr> {
    text.trim()
        .parse()
        .map_err(|_| format!("{text:?} is not an IP address and a port"))
}

/// A filter of the crate `tracing`.
pub(super) fn filter(text: &str) -> Parsed<String> {
    words(text)?;
    EnvFilter::builder()
        .parse(text)
        .map(|_| text.to_owned())
        .map_err(|error| format!("{text:?} is not a filter: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        for (text, expected) in [
            ("250ms", Duration::from_millis(250)),
            ("5s", Duration::from_secs(5)),
            ("1m", Duration::from_mins(1)),
            ("1h 30m", Duration::from_mins(90)),
            ("7d", Duration::from_hours(7 * 24)),
            ("2w", Duration::from_hours(14 * 24)),
            ("PT10S", Duration::from_secs(10)),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "5",
            "soon",
            "-5s",
            "0s",
            "0ms",
            "1mo",
            "1y",
            "11 years",
            "5000d",
            "9999999999999999999s",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_stay_in_their_range() {
        assert_eq!(number("7", 1..=9), Ok(7));
        assert_eq!(number("0", 1..=9), Err("0 is out of range".to_owned()));
        assert!(number::<u32>("-1", 0..=9).is_err());
        assert!(number::<u32>("many", 0..=9).is_err());
    }

    #[test]
    fn an_address_has_numbers_and_a_port() {
        assert!(address("127.0.0.1:7373").is_ok());
        assert!(address("[::1]:0").is_ok());
        assert!(address("0.0.0.0").is_err());
        assert!(address("localhost:7373").is_err());
    }

    #[test]
    fn a_url_that_is_refused_is_not_repeated() {
        for text in [
            "mysql://ann:s3cret@db/main",
            "ann:s3cret@db",
            "postgres:ann:s3cret@db",
            "s3cret",
        ] {
            let refusal = url(text, &["postgres", "postgresql"]).unwrap_err();
            assert!(!refusal.contains("s3cret"), "{refusal}");
        }
    }

    #[test]
    fn projects_and_task_queues_come_in_pairs() {
        let pair = |project: &str, queue: &str| (project.to_owned(), queue.to_owned());
        assert_eq!(
            pairs("shop/default, crm/a/b"),
            Ok(vec![pair("shop", "default"), pair("crm", "a/b")])
        );
        for text in ["", "shop", "shop/", "/default", "shop/default,"] {
            assert!(pairs(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_filter_must_be_one() {
        assert!(filter("info,stationmaster_core=debug").is_ok());
        assert!(filter("loudly=louder").is_err());
        assert!(filter("").is_err());
    }
}
