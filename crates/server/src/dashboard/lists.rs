//! Lists that people sort and search by name: what the API tells page by page is read whole, as far as a person would look, and a part
//! of it is shown.

use std::cmp::Ordering;

use maud::{Markup, html};
use stationmaster_client::Error;
use stationmaster_client::wire::Page;

use super::fields::{Fields, address};
use super::pieces::{at_least, grouped};

/// Rows read at most to be sorted.
const MOST: usize = 3_000;
/// Rows of one call.
pub(super) const CALL: u32 = 500;
/// Rows shown at once.
const SHOWN: usize = 100;

/// A column, and what it is sorted by, if it is.
pub(super) struct Column<T> {
    pub(super) key: &'static str,
    pub(super) word: &'static str,
    /// Numbers stand at the right, and the largest come first.
    pub(super) number: bool,
    pub(super) compare: Option<fn(&T, &T) -> Ordering>,
}

impl<T> Column<T> {
    pub(super) const fn text(key: &'static str, word: &'static str, compare: fn(&T, &T) -> Ordering) -> Self {
        Self {
            key,
            word,
            number: false,
            compare: Some(compare),
        }
    }

    pub(super) const fn number(
        key: &'static str,
        word: &'static str,
        compare: fn(&T, &T) -> Ordering,
    ) -> Self {
        Self {
            key,
            word,
            number: true,
            compare: Some(compare),
        }
    }

    pub(super) const fn plain(word: &'static str) -> Self {
        Self {
            key: "",
            word,
            number: false,
            compare: None,
        }
    }
}

/// What was read of a list.
pub(super) struct Whole<T> {
    pub(super) items: Vec<T>,
    /// There is more than anybody would sort.
    pub(super) cut: bool,
}

/// What one page tells of a list that is not sorted, and where the next one begins.
pub(super) fn first<T>(page: Page<T>) -> (Whole<T>, Option<String>) {
    let whole = Whole {
        items: page.items,
        cut: false,
    };
    (whole, page.next_cursor)
}

/// Reads page after page.
pub(super) async fn whole<T, F: Future<Output = Result<Page<T>, Error>>>(
    next: impl Fn(Option<String>) -> F,
) -> Result<Whole<T>, Error> {
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let page = next(cursor.take()).await?;
        items.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() || items.len() >= MOST {
            return Ok(Whole {
                items,
                cut: cursor.is_some(),
            });
        }
    }
}

/// The order that the address asks for: a column, and whether it is turned round.
fn order(fields: &Fields) -> Option<(&str, bool)> {
    let asked = fields.get("sort")?;
    Some(asked.strip_prefix('-').map_or((asked, false), |key| (key, true)))
}

/// Does the address ask for something that takes the whole list?
pub(super) fn asked(fields: &Fields, narrowing: &[&str]) -> bool {
    ["sort", "page"]
        .iter()
        .chain(narrowing)
        .any(|name| fields.get(name).is_some())
}

/// Sorts as the address asks for: text from its beginning, numbers from the largest, unless it is to be turned round.
pub(super) fn arrange<T>(items: &mut [T], fields: &Fields, columns: &[Column<T>]) {
    let Some((key, turned)) = order(fields) else {
        return;
    };
    let Some(column) = columns.iter().find(|column| column.key == key) else {
        return;
    };
    if let Some(compare) = column.compare {
        items.sort_by(compare);
        if column.number != turned {
            items.reverse();
        }
    }
}

/// The heads of the columns; those that can be sorted by are links.
pub(super) fn heads<T>(path: &str, fields: &Fields, columns: &[Column<T>]) -> Markup {
    heads_after(html! {}, path, fields, columns)
}

/// The same behind a head that is no column's.
#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
pub(super) fn heads_after<T>(first: Markup, path: &str, fields: &Fields, columns: &[Column<T>]) -> Markup {
    let now = order(fields);
    html! {
        tr { (first) @for column in columns {
            @let here = now.filter(|(key, _)| column.compare.is_some() && *key == column.key);
            @let down = here.is_some_and(|(_, turned)| column.number != turned);
            th.number[column.number] aria-sort=[here.map(|_| if down { "descending" } else { "ascending" })] {
                @if column.compare.is_some() {
                    @let key = match here { Some((key, false)) => format!("-{key}"), _ => column.key.to_owned() };
                    @let pairs = { let mut pairs = fields.without(&["sort", "page", "cursor"]); pairs.push(("sort".to_owned(), key)); pairs };
                    a href=(address(path, &pairs)) { (column.word) @if here.is_some() { span aria-hidden="true" { @if down { " ↓" } @else { " ↑" } } } }
                } @else { (column.word) }
            }
        } }
    }
}

/// The head of a column by which the server itself can sort: a link to that order, or to the other way round. `sorted` says how the list is
/// sorted by it now.
pub(super) fn turned(
    path: &str,
    fields: &Fields,
    (word, title): (&str, &str),
    to: Option<&str>,
    sorted: Option<&str>,
) -> Markup {
    let mut pairs = fields.without(&["sort", "cursor"]);
    pairs.extend(to.map(|to| ("sort".to_owned(), to.to_owned())));
    html! {
        a href=(address(path, &pairs)) title=(title) { (word) @if let Some(sorted) = sorted { span aria-hidden="true" { @if sorted == "descending" { " ↓" } @else { " ↑" } } } }
    }
}

/// How many there are in a status: the status, its word, its lamp, how many, and whether there may be more.
pub(super) type Count<'a> = (&'a str, &'a str, &'a str, i64, bool);

/// How many there are in each status, each a way to them.
pub(super) fn tally(path: &str, fields: &Fields, counts: &[Count<'_>]) -> Markup {
    let now = fields.get("status");
    let to = |status: Option<&str>| {
        let mut pairs = fields.without(&["status", "cursor"]);
        pairs.extend(status.map(|status| ("status".to_owned(), status.to_owned())));
        address(path, &pairs)
    };
    html! {
        nav.tally aria-label="By status" {
            a href=(to(None)) aria-current=[now.is_none().then_some("true")] { "all" }
            @for (status, word, class, count, more) in counts {
                a.none[*count == 0 && !more] href=(to(Some(status))) aria-current=[(now == Some(status)).then_some("true")] {
                    span.lamp.(class) { (word) } " " strong { @if *more { (at_least(*count)) } @else { (grouped(*count)) } }
                }
            }
        }
    }
}

/// Which part is shown, from none on.
fn at(fields: &Fields) -> usize {
    let page = fields.get("page").and_then(|page| page.parse::<usize>().ok());
    page.unwrap_or(1).max(1) - 1
}

/// The part that the address asks for.
pub(super) fn part<'a, T>(items: &'a [T], fields: &Fields) -> &'a [T] {
    items.chunks(SHOWN).nth(at(fields)).unwrap_or_default()
}

/// The way to the other parts, and how many there are.
pub(super) fn turner<T>(path: &str, fields: &Fields, whole: &Whole<T>) -> Markup {
    let (here, parts) = (at(fields), whole.items.len().div_ceil(SHOWN));
    let to = |page: usize| {
        let mut pairs = fields.without(&["page", "cursor"]);
        pairs.push(("page".to_owned(), (page + 1).to_string()));
        address(path, &pairs)
    };
    html! {
        @if whole.cut { p.quiet { "Of very many, the first " (whole.items.len()) " are sorted and searched; a filter narrows them." } }
        @if parts > 1 {
            nav.pager aria-label="Pages of the list" {
                @if here > 0 { a.button rel="prev" href=(to(here - 1)) { "Page before" } }
                span.quiet { "Page " (here + 1) " of " (parts) ", " (whole.items.len()) " in all" }
                @if here + 1 < parts { a.button rel="next" href=(to(here + 1)) { "Next page" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column<(u32, &str)>; 2] = [
        Column::text("name", "Name", |one, other| one.1.cmp(other.1)),
        Column::number("size", "Size", |one, other| one.0.cmp(&other.0)),
    ];

    fn sorted(by: &str) -> Vec<u32> {
        let mut items = [(2, "b"), (3, "a"), (1, "c")];
        arrange(
            &mut items,
            &Fields::read(format!("sort={by}").as_bytes()),
            &COLUMNS,
        );
        items.iter().map(|item| item.0).collect()
    }

    #[test]
    fn text_begins_with_the_first_and_numbers_with_the_largest_unless_turned_round() {
        assert_eq!(sorted("name"), [3, 2, 1]);
        assert_eq!(sorted("-name"), [1, 2, 3]);
        assert_eq!(sorted("size"), [3, 2, 1]);
        assert_eq!(sorted("-size"), [1, 2, 3]);
        assert_eq!(sorted("nonsense"), [2, 3, 1]);
    }

    #[test]
    fn the_head_of_the_column_in_force_leads_to_the_other_way_round_and_keeps_the_filters() {
        let fields = Fields::read(b"search=x&sort=size&page=3");
        let heads = heads("/things", &fields, &COLUMNS).into_string();
        assert!(heads.contains("/things?search=x&amp;sort=-size"), "{heads}");
        assert!(heads.contains("/things?search=x&amp;sort=name"), "{heads}");
        assert_eq!(heads.matches("aria-sort=\"descending\"").count(), 1, "{heads}");
    }
}
