//! Pages of long lists: in the order of an index, with bounded work for each page, whatever the filter.
//!
//! A page is made in two steps: candidates by what an index can tell, then their rows, filtered by what no index tells. At most
//! [`WINDOW`] candidates are looked at for a page, so a page may hold fewer rows than asked for and still not be the last: where
//! the next one begins is told.

use stationmaster_wire::Order;
use uuid::Uuid;

/// The most candidates that are looked at for one page.
pub const WINDOW: i64 = 5_000;

/// A page, and where the next one begins.
#[derive(Debug, Clone)]
pub struct Page<T, P = Uuid> {
    /// The rows, in the order of the list.
    pub rows: Vec<T>,
    /// Beyond which place there is more; none: this was all.
    pub next: Option<P>,
}

impl<T> Page<T> {
    /// One page of several that were asked for from the same place on. What one of them does not tell is not told of the others
    /// either, so that the next page misses nothing; what changed sides between two of them comes once.
    pub(crate) fn merged(pages: Vec<Self>, limit: usize, order: Order, place: impl Fn(&T) -> Uuid) -> Self {
        let compare = |one: &Uuid, other: &Uuid| match order {
            Order::Newest => other.cmp(one),
            Order::Oldest => one.cmp(other),
        };
        let known_to = pages.iter().filter_map(|page| page.next).min_by(compare);
        let mut rows: Vec<T> = pages.into_iter().flat_map(|page| page.rows).collect();
        rows.retain(|row| known_to.is_none_or(|known_to| compare(&place(row), &known_to).is_le()));
        rows.sort_by(|one, other| compare(&place(one), &place(other)));
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

    /// The page, from the rows among the candidates that match; both in the order of the list.
    pub(crate) fn page<T, P: Copy + PartialEq>(
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
        let (known, beyond) = if self.plain {
            candidates.split_at(self.limit.min(candidates.len()))
        } else {
            (candidates, &[][..])
        };
        rows.retain(|row| !beyond.contains(&place(row)));
        let next = known.last().copied().filter(|_| full);
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
        in_order(pages, limit, Order::Newest)
    }

    fn in_order(pages: Vec<Page<Uuid>>, limit: usize, order: Order) -> (Vec<u128>, Option<u128>) {
        let page = Page::merged(pages, limit, order, |id| *id);
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

    #[test]
    fn the_oldest_first_are_merged_the_other_way_round() {
        let cut = vec![page(&[2, 4], Some(4)), page(&[3, 5, 9], None)];
        assert_eq!(in_order(cut, 10, Order::Oldest), (vec![2, 3, 4], Some(4)));
        let much = vec![page(&[5, 9], None), page(&[4, 5], None)];
        assert_eq!(in_order(much, 2, Order::Oldest), (vec![4, 5], Some(5)));
    }

    fn windowed(window: Window, rows: &[u32], candidates: &[u32]) -> (Vec<u32>, Option<u32>) {
        let page = window.page(rows.to_vec(), |row| *row, candidates);
        (page.rows, page.next)
    }

    #[test]
    fn where_an_index_tells_everything_one_candidate_more_says_that_there_is_a_next_page() {
        let window = Window::new(2, true);
        assert_eq!((window.candidates(), window.rows()), (3, 3));
        assert_eq!(windowed(window, &[9, 8], &[9, 8]), (vec![9, 8], None));
        assert_eq!(windowed(window, &[9, 8, 7], &[9, 8, 7]), (vec![9, 8], Some(8)));
        // A row that went away between the two looks leaves a page that is short, and not the last.
        assert_eq!(windowed(window, &[9, 7], &[9, 8, 7]), (vec![9], Some(8)));
        assert_eq!(windowed(window, &[], &[]), (vec![], None));
    }

    #[test]
    fn where_rows_are_looked_through_a_full_window_says_where_to_go_on() {
        let window = Window::new(2, false);
        assert_eq!((window.candidates(), window.rows()), (WINDOW, 3));
        let full: Vec<u32> = (1..=5_000).rev().collect();
        assert_eq!(windowed(window, &[4_000], &full), (vec![4_000], Some(1)));
        assert_eq!(windowed(window, &[], &full), (vec![], Some(1)));
        assert_eq!(windowed(window, &[], &full[1..]), (vec![], None));
        assert_eq!(
            windowed(window, &[4_000, 3_000, 2_000], &full),
            (vec![4_000, 3_000], Some(3_000))
        );
    }

    #[test]
    fn a_text_means_itself_in_a_pattern() {
        assert_eq!(like(r"50%_of\a"), r"%50\%\_of\\a%");
    }
}
