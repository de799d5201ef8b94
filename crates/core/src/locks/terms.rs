//! What a lock is asked for with: a name and two times. Checked here, so that nobody holds one that cannot work. Pure.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::Error;

/// Characters of a name, as wide as ShedLock's column.
pub const LONGEST_NAME: usize = 64;
/// Characters of `locked_by`, as wide as ShedLock's column.
const LONGEST_HOLDER: usize = 255;
/// ShedLock counts in milliseconds.
const SHORTEST: Duration = Duration::from_millis(1);
/// Far beyond any piece of work, and every time that follows from it still fits everywhere.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// The name of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct LockName(String);

impl LockName {
    /// A name of our own, which needs no check at run time.
    pub(crate) fn ours(name: &'static str) -> Self {
        debug_assert!(name.parse::<Self>().is_ok(), "{name} is no name for a lock");
        Self(name.to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LockName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let length = text.chars().count();
        if text.trim().is_empty() {
            return Err(Error::Invalid("the name of the lock is empty".to_owned()));
        }
        if length > LONGEST_NAME {
            return Err(Error::Invalid(format!(
                "the name of the lock has {length} characters, and the table has room for {LONGEST_NAME}"
            )));
        }
        if text.contains(char::is_control) {
            return Err(Error::Invalid(
                "the name of the lock holds a control character".to_owned(),
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// For how long a lock is held: at most, should its holder be lost, and at least, should its holder be quick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    at_most: Duration,
    at_least: Duration,
}

impl Terms {
    /// Terms that can be kept.
    pub fn new(at_most: Duration, at_least: Duration) -> Result<Self, Error> {
        if at_most < SHORTEST {
            return Err(Error::Invalid(
                "a lock must be held for at most some time: give at least 1 ms".to_owned(),
            ));
        }
        if at_most > LONGEST {
            return Err(Error::Invalid(
                "a lock cannot be held for more than ten years".to_owned(),
            ));
        }
        if at_least > at_most {
            return Err(Error::Invalid(format!(
                "a lock cannot be held for at least {at_least:?} and at most {at_most:?}: at least must not be longer"
            )));
        }
        Ok(Self { at_most, at_least })
    }

    /// How long it holds unless it is extended.
    #[must_use]
    pub fn at_most(self) -> Duration {
        self.at_most
    }

    /// How long it stays held, even when its holder has unlocked it.
    #[must_use]
    pub fn at_least(self) -> Duration {
        self.at_least
    }
}

/// Who holds one acquisition: the owner in words, and an id that no other acquisition ever has. Whoever asks with an old
/// one finds that it holds nothing, also on the same host and in the same process.
pub(super) fn holder(owner: &str) -> Result<String, Error> {
    if owner.contains(char::is_control) {
        return Err(Error::Invalid(
            "the owner of the lock holds a control character".to_owned(),
        ));
    }
    let id = Uuid::now_v7().simple().to_string();
    let room = LONGEST_HOLDER - id.len() - 1;
    let owner: String = owner.chars().take(room).collect();
    Ok(format!("{owner}#{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn refusal<T: fmt::Debug>(answer: Result<T, Error>) -> String {
        answer.unwrap_err().to_string()
    }

    #[test]
    fn names_fit_into_shedlocks_column() {
        for name in [
            "a",
            "processExecutionQueue",
            "with blanks: and 'quotes'\"",
            &"é".repeat(64),
        ] {
            assert_eq!(name.parse::<LockName>().unwrap().as_str(), name);
        }
        assert!(refusal("é".repeat(65).parse::<LockName>()).contains("65 characters"));
        assert!(refusal("".parse::<LockName>()).contains("empty"));
        assert!(refusal("  ".parse::<LockName>()).contains("empty"));
        assert!(refusal("a\0b".parse::<LockName>()).contains("control character"));
        assert!(refusal("a\nb".parse::<LockName>()).contains("control character"));
    }

    #[test]
    fn at_least_may_be_nothing_and_must_not_be_more_than_at_most() {
        assert!(Terms::new(SECOND, Duration::ZERO).is_ok());
        assert!(Terms::new(SECOND, SECOND).is_ok());
        assert!(refusal(Terms::new(SECOND, SECOND * 2)).contains("must not be longer"));
    }

    #[test]
    fn at_most_is_neither_nothing_nor_for_ever() {
        assert!(refusal(Terms::new(Duration::ZERO, Duration::ZERO)).contains("at least 1 ms"));
        assert!(refusal(Terms::new(Duration::from_micros(999), Duration::ZERO)).contains("at least 1 ms"));
        assert!(refusal(Terms::new(Duration::MAX, Duration::ZERO)).contains("ten years"));
    }

    #[test]
    fn no_two_holders_are_the_same_and_all_of_them_fit() {
        let (one, other) = (holder("host").unwrap(), holder("host").unwrap());
        assert_ne!(one, other);
        assert!(one.starts_with("host#"), "{one}");
        assert_eq!(holder(&"é".repeat(1000)).unwrap().chars().count(), LONGEST_HOLDER);
        assert!(refusal(holder("a\0")).contains("control character"));
    }
}
