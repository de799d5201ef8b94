//! Pages of long lists: newest first, with bounded work for each page, whatever the filter.
//!
//! A page is made in two steps: candidates by what an index can tell, then their rows, filtered by what no index tells. At most
//! [`WINDOW`] candidates are looked at for a page, so a page may hold fewer rows than asked for and still not be the last: where
//! the next one begins is told.

use uuid::Uuid;

/// The most candidates that are looked at for one page.
pub const WINDOW: i64 = 5_000;

/// A page, and where the next one begins.
#[derive(Debug, Clone)]
pub struct Page<T, P = Uuid> {
    /// The rows, newest first.
    pub rows: Vec<T>,
    /// Below which place there is more; none: this was all.
    pub next: Option<P>,
}

impl<T> Page<T> {
    /// One page of several that were asked for from the same place on. What one of them does not tell is not told of the others
    /// either, so that the next page misses nothing; what changed sides between two of them comes once.
    pub(crate) fn merged(pages: Vec<Self>, limit: usize, place: impl Fn(&T) -> Uuid) -> Self {
        let known_to = pages.iter().filter_map(|page| page.next).max();
        let mut rows: Vec<T> = pages.into_iter().flat_map(|page| page.rows).collect();
        rows.retain(|row| known_to.is_none_or(|known_to| place(row) >= known_to));
        rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
        rows.dedup_by_key(|row| place(row));
        if rows.len() > limit {
            rows.truncate(limit);
            let next = rows.last().map(&place);
            return Self { rows, next };
        }
        Self { rows, next: known_to }
    }
}

/// A text as a pattern that finds it anywhere, and means itself.
pub(crate) fn like(text: &str) -> String {
    let text = text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    format!("%{text}%")
}

/// How much is looked at for a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    limit: usize,
    /// An index tells everything, so every candidate is on the page.
    plain: bool,
}

impl Window {
    pub(crate) fn new(limit: usize, plain: bool) -> Self {
        Self { limit, plain }
    }

    /// How many candidates to read. With a plain filter the one beyond the page is only a sign that there is more.
    pub(crate) fn candidates(self) -> i64 {
        if self.plain { self.rows() } else { WINDOW }
    }

    /// How many of their rows to read: one more than a page holds.
    pub(crate) fn rows(self) -> i64 {
        i64::try_from(self.limit).unwrap_or(WINDOW) + 1
    }

    /// The page, from the rows among the candidates that match.
    pub(crate) fn page<T, P: Copy + PartialOrd>(
        self,
        mut rows: Vec<T>,
        place: impl Fn(&T) -> P,
        candidates: &[P],
    ) -> Page<T, P> {
        if rows.len() > self.limit {
            rows.truncate(self.limit);
            let next = rows.last().map(&place);
            return Page { rows, next };
        }
        // A full window may have more behind it.
        let full = i64::try_from(candidates.len()).is_ok_and(|count| count >= self.candidates());
        let last = if self.plain {
            candidates.get(self.limit.saturating_sub(1))
        } else {
            candidates.last()
        };
        let next = last.copied().filter(|_| full);
        if let Some(next) = next {
            rows.retain(|row| place(row) >= next);
        }
        Page { rows, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: &[u128], next: Option<u128>) -> Page<Uuid> {
        Page {
            rows: ids.iter().copied().map(Uuid::from_u128).collect(),
            next: next.map(Uuid::from_u128),
        }
    }

    fn merged(pages: Vec<Page<Uuid>>, limit: usize) -> (Vec<u128>, Option<u128>) {
        let page = Page::merged(pages, limit, |id| *id);
        let ids = page.rows.iter().map(Uuid::as_u128).collect();
        (ids, page.next.map(|id| id.as_u128()))
    }

    #[test]
    fn pages_are_merged_as_far_as_all_of_them_are_known() {
        let all = vec![page(&[9, 5], None), page(&[8, 5, 1], None)];
        assert_eq!(merged(all, 10), (vec![9, 8, 5, 1], None));
        let cut = vec![page(&[9, 7], Some(7)), page(&[8, 6, 1], None)];
        assert_eq!(merged(cut, 10), (vec![9, 8, 7], Some(7)));
        let much = vec![page(&[9, 5], None), page(&[8, 4], None)];
        assert_eq!(merged(much, 3), (vec![9, 8, 5], Some(5)));
        assert_eq!(
            merged(vec![page(&[], Some(3)), page(&[2], None)], 3),
            (vec![], Some(3))
        );
    }
}
