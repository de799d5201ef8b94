//! What an answer means: the classes of answers, and how long the target asks us to wait. Pure.

use std::time::Duration;

use super::Outcome;
use crate::words;

/// However long a target asks us to stay away, we come back after this.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_hours(24);

words! {
    /// What came of a try, as far as it decides what follows. A bounded set: it is a label of metrics.
    pub enum Class {
        /// 2xx: confirmed.
        Accepted = "accepted",
        /// 408, 425, 429: not now.
        Busy = "busy",
        /// 3xx: redirects are not followed.
        Redirected = "redirected",
        /// 5xx, and whatever no HTTP server should say.
        Broken = "broken",
        /// No answer.
        Unreachable = "unreachable",
        /// 410: never again.
        Gone = "gone",
        /// Other 4xx: the same request will be refused again.
        Refused = "refused",
        /// Not sent: the guard forbids the target.
        Forbidden = "forbidden",
    }
}

impl Class {
    /// The class of what came of a try.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Answered { status, .. } => Self::of_status(*status),
            Outcome::Unreachable { .. } => Self::Unreachable,
            Outcome::Forbidden { .. } => Self::Forbidden,
        }
    }

    fn of_status(status: u16) -> Self {
        match status {
            200..300 => Self::Accepted,
            300..400 => Self::Redirected,
            408 | 425 | 429 => Self::Busy,
            410 => Self::Gone,
            400..500 => Self::Refused,
            _ => Self::Broken,
        }
    }

    /// Does it make sense to try again?
    #[must_use]
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::Gone | Self::Refused | Self::Forbidden)
    }
}

/// Reads `Retry-After`: seconds, or a date. `None`: it says nothing that can be read.
pub(super) fn retry_after(text: &str, now: jiff::Timestamp) -> Option<Duration> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    let wait = at.duration_since(now).max(jiff::SignedDuration::ZERO);
    Some(wait.unsigned_abs().min(LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_class() {
        for (statuses, class) in [
            (&[200, 201, 204, 299][..], Class::Accepted),
            (&[301, 302, 304, 307, 308], Class::Redirected),
            (&[408, 425, 429], Class::Busy),
            (&[410], Class::Gone),
            (
                &[400, 401, 403, 404, 405, 409, 413, 422, 451, 499],
                Class::Refused,
            ),
            (&[100, 199, 500, 501, 502, 503, 504, 599, 600, 999], Class::Broken),
        ] {
            for status in statuses {
                assert_eq!(Class::of_status(*status), class, "{status}");
            }
        }
    }

    #[test]
    fn retry_after_is_read_in_both_forms_and_bounded() {
        let now: jiff::Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let read = |text| retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(read("120"), Some(120));
        assert_eq!(read(" 0 "), Some(0));
        assert_eq!(read("Sun, 01 Mar 2026 12:01:30 GMT"), Some(90));
        assert_eq!(read("Sun, 01 Mar 2026 11:00:00 GMT"), Some(0), "the past is now");
        assert_eq!(read("99999999999999999999999"), Some(86_400));
        assert_eq!(read("Fri, 01 Mar 2030 12:00:00 GMT"), Some(86_400));
        assert_eq!(read(""), None);
        assert_eq!(read("soon"), None);
        assert_eq!(read("-5"), None);
    }
}
