//! The words of an expression, and what they mean. The grammar is told in docs/guides/alarms-and-dst.md.
//!
//! An expression that is read can fire: what names only dates that never come is refused here, with the place.

mod error;
mod every;
mod field;
mod parse;
mod word;

pub use error::ParseError;

use crate::calendar::Calendar;
use crate::describe;

/// An expression that was read: five or six fields, a nickname, or `@every` with a duration.
#[derive(Debug, Clone)]
pub struct Cron {
    text: String,
    rule: Rule,
}

/// What an expression means.
#[derive(Debug, Clone)]
pub(crate) enum Rule {
    /// Local times.
    Calendar(Box<Calendar>),
    /// Every so many seconds, whatever clocks show.
    Every(i64),
}

impl Cron {
    /// Reads an expression. Refuses what can never fire.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let rule = parse::rule(text)?;
        let text = text.to_owned();
        Ok(Self { text, rule })
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The expression in words.
    pub fn describe(&self) -> String {
        match &self.rule {
            Rule::Calendar(calendar) => describe::calendar(calendar),
            Rule::Every(seconds) => describe::every(*seconds),
        }
    }

    /// Whether the hour or the minute is left to the clock (`*`, `*/n`, `a/n`), so that the expression follows it when it is
    /// put forward or back. Otherwise it names fixed times.
    pub fn follows_the_clock(&self) -> bool {
        match &self.rule {
            Rule::Calendar(calendar) => calendar.wildcard,
            Rule::Every(_) => false,
        }
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }
}

#[cfg(test)]
mod tests;
