//! What is wrong with an expression, and where.

use std::ops::Range;

/// Why an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// What is wrong, and what would be right.
    pub message: String,
    /// The bytes of the expression that are meant; empty where something is missing.
    pub at: Range<usize>,
}

impl ParseError {
    pub(crate) fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, at }
    }

    /// The expression, and below it carets at the place. Control characters are shown as blanks.
    pub fn pointed(&self, text: &str) -> String {
        let width = |part: Range<usize>| {
            let starts = text.char_indices().map(|(start, _)| start);
            starts.filter(|start| part.contains(start)).count()
        };
        let before = width(0..self.at.start);
        let below = width(self.at.clone()).max(1);
        let shown = text.replace(char::is_control, " ");
        format!("{shown}\n{}{}", " ".repeat(before), "^".repeat(below))
    }
}
