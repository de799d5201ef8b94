//! Ids by their beginning: a part of an id is a stretch of them, which an index finds.

use uuid::Uuid;

/// The shortest part of an id that is looked for.
const SHORTEST_PART: usize = 4;

/// Ids that begin with a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) from: Uuid,
    pub(crate) to: Uuid,
}

impl Range {
    pub(crate) const ALL: Self = Self {
        from: Uuid::nil(),
        to: Uuid::max(),
    };

    /// Those that begin so, when it is enough of an id.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|character| *character != '-').collect();
        let is_part = (SHORTEST_PART..=32).contains(&digits.len())
            && text.is_ascii()
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let filled = |with: char| {
            let rest: String = std::iter::repeat_n(with, 32 - digits.len()).collect();
            Uuid::try_parse(&format!("{digits}{rest}")).ok()
        };
        if !is_part {
            return None;
        }
        Some(Self {
            from: filled('0')?,
            to: filled('f')?,
        })
    }

    /// Just behind the last of them.
    pub(super) fn end(self) -> Uuid {
        Uuid::from_u128(self.to.as_u128().saturating_add(1))
    }

    pub(super) fn holds(self, id: Uuid) -> bool {
        self.from <= id && id <= self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_id_is_a_stretch_of_them() {
        let id = Uuid::try_parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap_or_default();
        for part in ["0189", "01890a5d-", "01890A5D-ac96-77", &id.to_string()] {
            assert!(Range::of(part).is_some_and(|range| range.holds(id)), "{part}");
        }
        for no_part in ["018", "shop", "0189x", ""] {
            assert!(Range::of(no_part).is_none(), "{no_part}");
        }
        assert!(Range::of("0190").is_some_and(|range| !range.holds(id)));
    }

    #[test]
    fn a_stretch_of_ids_ends_where_the_next_begins() {
        let of = |text: &str| Range::of(text).unwrap_or(Range::ALL);
        assert_eq!(of("0189").end(), of("018a").from);
        assert!(!of("0189").holds(of("0189").end()) && of("0189").holds(of("0189").from));
        assert_eq!(Range::ALL.end(), Uuid::max(), "there is nothing behind the last");
        assert!(Range::of(&"0".repeat(33)).is_none());
    }
}
