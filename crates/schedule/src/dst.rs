//! The rules for clocks that are put forward (a gap of local times) or back (an overlap), and the notes that tell what they
//! did. How the rules become instants is told in `series` and `resolve`.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

/// What becomes of fixed local times that do not exist or come twice. Expressions that leave the hour or the minute to the
/// clock follow it under every policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DstPolicy {
    /// Once: in a gap at the first instant after it, in an overlap the first time.
    #[default]
    Vixie,
    /// Not at all in a gap; in an overlap the first time.
    Skip,
    /// In a gap at the first instant after it, in an overlap both times.
    Both,
}

impl DstPolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Vixie, Self::Skip, Self::Both];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vixie => "vixie",
            Self::Skip => "skip",
            Self::Both => "both",
        }
    }
}

impl fmt::Display for DstPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A word that names no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a DST policy: there are vixie, skip and both")]
pub struct UnknownPolicy(String);

impl FromStr for DstPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        found.ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

/// What a moving clock did to a fire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// The local time does not exist; this is the first instant after the gap. Several times of one gap fire once.
    MovedOutOfGap {
        /// The local time that does not exist; of several the first.
        wanted: DateTime,
        /// How many there are.
        times: u32,
    },
    /// The local time comes twice, and only this first time fires.
    OnceOfTwo,
    /// The local time comes twice; this is the first time.
    FirstOfTwo,
    /// The local time comes twice; this is the second time.
    SecondOfTwo,
    /// Between the instant asked from and this fire, a gap swallowed local times.
    SkippedBefore {
        /// The local time that does not exist; of several the first.
        wanted: DateTime,
        /// How many there are.
        times: u32,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MovedOutOfGap { wanted, times: 1 } => {
                let wanted = wanted.strftime("%H:%M:%S on %F");
                write!(
                    formatter,
                    "moved: {wanted} does not exist, this is the first instant after the gap"
                )
            }
            Self::MovedOutOfGap { wanted, times } => {
                let wanted = wanted.strftime("%H:%M:%S on %F");
                write!(
                    formatter,
                    "moved: {times} times from {wanted} do not exist, this is once for all of them, at the first instant after \
                     the gap"
                )
            }
            Self::OnceOfTwo => formatter.write_str("this local time comes twice, only the first time fires"),
            Self::FirstOfTwo => formatter.write_str("this local time comes twice, this is the first time"),
            Self::SecondOfTwo => formatter.write_str("this local time comes twice, this is the second time"),
            Self::SkippedBefore { wanted, times: 1 } => {
                let wanted = wanted.strftime("%H:%M:%S on %F");
                write!(
                    formatter,
                    "before this one, {wanted} was skipped: it does not exist"
                )
            }
            Self::SkippedBefore { wanted, times } => {
                let wanted = wanted.strftime("%H:%M:%S on %F");
                write!(
                    formatter,
                    "before this one, {times} times from {wanted} were skipped: they do not exist"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for policy in DstPolicy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.as_str());
        }
        assert!("quartz".parse::<DstPolicy>().is_err());
    }
}
