//! A set of small numbers: the minutes, hours, days or months that a field allows.

/// Numbers below 64, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Values(u64);

impl Values {
    /// Everything from the first to the last.
    pub(crate) fn span(first: u8, last: u8) -> Self {
        (first..=last).collect()
    }

    pub(crate) fn insert(&mut self, value: u8) {
        self.0 |= 1 << value;
    }

    pub(crate) fn contains(self, value: u8) -> bool {
        self.0 & (1 << value) != 0
    }

    /// The smallest that is not below this.
    pub(crate) fn first_from(self, value: u8) -> Option<u8> {
        let rest = self.0.checked_shr(value.into()).unwrap_or(0);
        let further = u8::try_from(rest.trailing_zeros()).ok()?;
        (rest != 0).then(|| value + further)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |&value| self.contains(value))
    }
}

impl FromIterator<u8> for Values {
    fn from_iter<I: IntoIterator<Item = u8>>(values: I) -> Self {
        let mut set = Self::default();
        for value in values {
            set.insert(value);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_value_is_found_and_there_is_none_after_the_last() {
        let values: Values = [0, 5, 63].into_iter().collect();
        assert_eq!(values.first_from(0), Some(0));
        assert_eq!(values.first_from(1), Some(5));
        assert_eq!(values.first_from(6), Some(63));
        assert_eq!(values.first_from(64), None);
        assert_eq!(Values::span(3, 5).iter().collect::<Vec<_>>(), [3, 4, 5]);
    }
}
