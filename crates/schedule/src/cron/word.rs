//! A piece of an expression that knows where it stands, so that every complaint can point at it.

use std::ops::Range;

use super::ParseError;

/// A piece of an expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    start: usize,
}

impl<'a> Word<'a> {
    pub(super) fn whole(text: &'a str) -> Self {
        Self { text, start: 0 }
    }

    /// Where it stands, in bytes.
    pub(super) fn at(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// What stands between blanks.
    pub(super) fn fields(self) -> Vec<Self> {
        let mut fields = Vec::new();
        let mut begun = None;
        for (index, character) in self.text.char_indices().chain([(self.text.len(), ' ')]) {
            match (begun, character.is_ascii_whitespace()) {
                (None, false) => begun = Some(index),
                (Some(start), true) => {
                    fields.push(self.part(start..index));
                    begun = None;
                }
                _ => {}
            }
        }
        fields
    }

    /// What stands between separators; a separator is one byte.
    pub(super) fn split(self, separator: u8) -> impl Iterator<Item = Self> {
        let mut start = 0;
        self.text.split(char::from(separator)).map(move |text| {
            let part = self.part(start..start + text.len());
            start += text.len() + 1;
            part
        })
    }

    /// What stands before and after the first separator.
    pub(super) fn split_once(self, separator: u8) -> Option<(Self, Self)> {
        let middle = self.text.find(char::from(separator))?;
        Some((self.part(0..middle), self.part(middle + 1..self.text.len())))
    }

    /// What stands before a last letter, in whatever case.
    pub(super) fn before_letter(self, letter: char) -> Option<Self> {
        let rest = self
            .text
            .strip_suffix(|last: char| last.eq_ignore_ascii_case(&letter))?;
        Some(self.part(0..rest.len()))
    }

    /// What follows a first letter, in whatever case.
    pub(super) fn after_letter(self, letter: char) -> Option<Self> {
        let rest = self
            .text
            .strip_prefix(|first: char| first.eq_ignore_ascii_case(&letter))?;
        Some(self.part(self.text.len() - rest.len()..self.text.len()))
    }

    /// The piece at these bytes of this one.
    pub(super) fn part(self, range: Range<usize>) -> Self {
        let start = self.start + range.start;
        Self {
            text: &self.text[range],
            start,
        }
    }

    /// A complaint about this piece.
    pub(super) fn wrong(self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.at(), message)
    }
}
