//! Lists: as many things as were asked for, page after page, and where they go on. Every list is shown the same way; what is
//! seen of a thing is told by its columns.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::io::{self, Write as _};

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use stationmaster_client::wire::Page;
use stationmaster_client::{Client, Paged};

use super::names::Place;
use super::{Context, typed};
use crate::failure::{Refusal, say};
use crate::output::{Described, Format, details, fields, rows_fitted, sort, word};

/// Things on one page of the API, at most.
const PAGE: u32 = 500;

/// How much of a list whose newest things come first, and how much of it may be asked for.
#[derive(Debug, Args)]
pub(crate) struct Newest<const MOST: i64 = 1_000> {
    /// At most so many, the newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=MOST))]
    limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    before: Option<String>,
    #[command(flatten)]
    sorting: Sorting,
}

impl<const MOST: i64> Newest<MOST> {
    /// The column that the list is to be sorted by, for lists that the server can sort whole.
    pub(super) fn sorted_by(&self) -> Option<&str> {
        self.sorting.sort.as_deref()
    }

    /// The same list in the order in which it comes.
    pub(super) fn unsorted(self) -> Self {
        Self {
            sorting: Sorting::default(),
            ..self
        }
    }
}

/// How much of a list in the order of ids.
#[derive(Debug, Args)]
pub(crate) struct InOrder {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    after: Option<String>,
    #[command(flatten)]
    sorting: Sorting,
}

/// In which order a list is shown.
#[derive(Debug, Default, Args)]
pub(crate) struct Sorting {
    /// Show them in the order of this column; with - before it, the last come first
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    sort: Option<String>,
}

impl Sorting {
    /// Is an order asked for?
    pub(super) fn is_asked(&self) -> bool {
        self.sort.is_some()
    }

    fn apply<T: Described>(&self, things: &mut [T]) -> Result<()> {
        match &self.sort {
            Some(by) => Ok(sort(things, by)?),
            None => Ok(()),
        }
    }
}

/// How much of a list, from where, by which flag one reads on, and in which order it is shown.
pub(super) struct Part {
    limit: u32,
    from: Option<String>,
    flag: &'static str,
    sorting: Sorting,
    /// What is said when there is nothing, in other words than the usual ones.
    nothing: Option<&'static str>,
}

impl<const MOST: i64> From<Newest<MOST>> for Part {
    fn from(
        Newest {
            limit,
            before,
            sorting,
        }: Newest<MOST>,
    ) -> Self {
        Self {
            limit,
            from: before,
            flag: "--before",
            sorting,
            nothing: None,
        }
    }
}

impl From<InOrder> for Part {
    fn from(
        InOrder {
            limit,
            after,
            sorting,
        }: InOrder,
    ) -> Self {
        Self {
            limit,
            from: after,
            flag: "--after",
            sorting,
            nothing: None,
        }
    }
}

impl Part {
    /// The first things of a list.
    pub(super) fn first(limit: u32) -> Self {
        Self {
            limit,
            from: None,
            flag: "",
            sorting: Sorting::default(),
            nothing: None,
        }
    }

    /// These words when there is nothing.
    pub(super) fn or_say(self, words: &'static str) -> Self {
        Self {
            nothing: Some(words),
            ..self
        }
    }

    /// Says how to read on, beside the list: to people by the command that does, to programs by name.
    pub(super) fn say_where_it_ends(&self, next: Option<&str>, format: Format) {
        match (next, format) {
            (None, _) => {}
            (Some(next), Format::People) => {
                say(format_args!("There is more: {}", typed::again(self.flag, next)));
            }
            (Some(next), Format::Json) => say(json!({ "next_cursor": next })),
        }
    }
}

/// What is asked for: one question, or several whose answers are shown as one list.
pub(super) struct Asked<Q, T> {
    /// Each with a word of its own.
    each: Vec<(String, Q)>,
    /// Which of two things comes first.
    order: fn(&T, &T) -> Ordering,
}

impl<Q: Paged + Clone, T> Asked<Q, T> {
    /// One question.
    fn one(query: Q) -> Self {
        Self {
            each: vec![(String::new(), query)],
            order: |_, _| Ordering::Equal,
        }
    }

    /// A question for each value of a filter; without a value the question as it is.
    pub(super) fn of_each<V: Serialize + Clone + PartialEq>(
        query: Q,
        values: &[V],
        filter: impl Fn(&mut Q, V),
        order: fn(&T, &T) -> Ordering,
    ) -> Self {
        let mut each: Vec<(String, Q)> = Vec::new();
        for value in values {
            let (word, mut query) = (word(value), query.clone());
            filter(&mut query, value.clone());
            if each.iter().all(|(known, _)| *known != word) {
                each.push((word, query));
            }
        }
        if each.is_empty() {
            return Self {
                order,
                ..Self::one(query)
            };
        }
        Self { each, order }
    }

    /// The same questions in each of these places.
    pub(super) fn within(self, places: &[Place], filter: impl Fn(&mut Q, Place)) -> Self {
        let mut each = Vec::new();
        for (word, query) in &self.each {
            for place in places {
                let mut query = query.clone();
                filter(&mut query, *place);
                let workspace = place.workspace.filter(|_| places.len() > 1);
                let word = workspace.map_or_else(|| word.clone(), |id| format!("{word}-{id}"));
                each.push((word, query));
            }
        }
        Self { each, ..self }
    }
}

/// As much of a list as was asked for.
pub(super) struct Listed<T> {
    /// The things.
    pub(super) rows: Vec<T>,
    /// Where to go on; none: this was all.
    pub(super) next: Option<String>,
}

/// What is shown of a list, and where it goes on.
pub(super) struct View {
    pub(super) text: String,
    pub(super) next: Option<String>,
    /// Columns for which there was no room.
    left_out: Vec<&'static str>,
}

/// Reads page after page until there is enough.
pub(super) async fn listed<Q: Paged, T>(
    client: &Client,
    part: &Part,
    mut query: Q,
    read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
) -> Result<Listed<T>> {
    let (mut rows, mut next) = (Vec::new(), part.from.clone());
    loop {
        let missing = part.limit.saturating_sub(u32::try_from(rows.len())?);
        if missing == 0 {
            return Ok(Listed { rows, next });
        }
        *query.limit() = Some(missing.min(PAGE));
        *query.cursor() = next;
        let Page { items, next_cursor } = read(client, &query).await?;
        rows.extend(items);
        next = next_cursor;
        if next.is_none() {
            return Ok(Listed { rows, next });
        }
    }
}

/// One of several lists that are shown as one.
struct Source<Q, T> {
    word: String,
    query: Q,
    /// Where the page begins of which `rows` are left.
    began: Option<String>,
    /// How many of that page were taken.
    taken: u32,
    rows: VecDeque<T>,
    /// Where the next page begins.
    next: Option<String>,
    /// There is a page that was not read.
    more: bool,
}

impl<Q: Paged, T> Source<Q, T> {
    /// Reads on until there is something to choose from, or nothing left.
    async fn fill(
        &mut self,
        client: &Client,
        limit: u32,
        read: &impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    ) -> Result<()> {
        while self.rows.is_empty() && self.more {
            self.began = self.next.take();
            let Page { items, next_cursor } = self.read(client, limit, read).await?;
            (self.rows, self.taken) = (items.into(), 0);
            (self.more, self.next) = (next_cursor.is_some(), next_cursor);
        }
        Ok(())
    }

    async fn read(
        &mut self,
        client: &Client,
        limit: u32,
        read: &impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    ) -> Result<Page<T>> {
        *self.query.limit() = Some(limit.min(PAGE));
        self.query.cursor().clone_from(&self.began);
        Ok(read(client, &self.query).await?)
    }

    /// Where this list goes on behind what was taken of it; nothing when all was.
    async fn place(
        &mut self,
        client: &Client,
        read: &impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    ) -> Result<Option<String>> {
        let cursor = match (self.rows.is_empty(), self.taken) {
            (true, _) if !self.more => return Ok(None),
            (true, _) => self.next.clone(),
            (false, 0) => self.began.clone(),
            // A page that ends there says it.
            (false, taken) => self.read(client, taken, read).await?.next_cursor,
        };
        Ok(Some(format!("{}:{}", self.word, cursor.unwrap_or_default())))
    }
}

/// Reads several lists as one, in their common order.
async fn merged<Q: Paged + Clone, T>(
    client: &Client,
    part: &Part,
    asked: &Asked<Q, T>,
    read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
) -> Result<Listed<T>> {
    if let [(_, query)] = &asked.each[..] {
        return listed(client, part, query.clone(), read).await;
    }
    let mut sources = Vec::new();
    for (word, query) in &asked.each {
        let begins = match &part.from {
            None => Begins::AtTheStart,
            Some(places) => Begins::of(places, word)?,
        };
        sources.push(Source {
            word: word.clone(),
            query: query.clone(),
            began: None,
            taken: 0,
            rows: VecDeque::new(),
            more: begins != Begins::Nowhere,
            next: match begins {
                Begins::At(cursor) => Some(cursor),
                Begins::AtTheStart | Begins::Nowhere => None,
            },
        });
    }
    let mut rows = Vec::new();
    while u32::try_from(rows.len())? < part.limit {
        let mut first: Option<usize> = None;
        for at in 0..sources.len() {
            sources[at].fill(client, part.limit, &read).await?;
            let before = |best: usize| {
                let (one, other) = (sources[at].rows.front(), sources[best].rows.front());
                one.zip(other)
                    .is_some_and(|(one, other)| (asked.order)(one, other).is_lt())
            };
            if !sources[at].rows.is_empty() && first.is_none_or(before) {
                first = Some(at);
            }
        }
        let Some(first) = first else { break };
        rows.extend(sources[first].rows.pop_front());
        sources[first].taken += 1;
    }
    let mut places = Vec::new();
    for source in &mut sources {
        places.extend(source.place(client, &read).await?);
    }
    let next = (!places.is_empty()).then(|| places.join("."));
    Ok(Listed { rows, next })
}

/// Where one of several lists goes on.
#[derive(Debug, PartialEq, Eq)]
enum Begins {
    AtTheStart,
    At(String),
    /// It has ended.
    Nowhere,
}

impl Begins {
    /// Of the list of this word, by what was said where several ended.
    fn of(places: &str, word: &str) -> Result<Self> {
        let mut found = Self::Nowhere;
        for place in places.split('.') {
            let Some((of, cursor)) = place.split_once(':') else {
                let message = "this is not where a list of these filters ended";
                let advice = "Give what the list before said, with the same filters; or leave it out";
                return Err(Refusal::usage(message, advice).into());
            };
            match (of == word, cursor) {
                (false, _) => {}
                (true, "") => found = Self::AtTheStart,
                (true, cursor) => found = Self::At(cursor.to_owned()),
            }
        }
        Ok(found)
    }
}

/// A list as it is now; `again`: it will be shown again.
pub(super) async fn view<Q: Paged + Clone, T: Described + Serialize>(
    client: &Client,
    part: &Part,
    asked: &Asked<Q, T>,
    read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    (context, again): (&Context, bool),
) -> Result<View> {
    // A column that is not there is told before anybody is asked.
    part.sorting.apply::<T>(&mut [])?;
    let Listed {
        rows: mut things,
        next,
    } = merged(client, part, asked, read).await?;
    part.sorting.apply(&mut things)?;
    let mut left_out = Vec::new();
    let text = context.format.view(&things[..], again, |things| {
        let (text, columns) = rows_fitted(things);
        left_out = columns;
        part.nothing
            .filter(|_| things.is_empty())
            .map_or(text, str::to_owned)
    })?;
    Ok(View { text, next, left_out })
}

impl Context {
    /// Shows a part of a list.
    pub(super) async fn list<Q: Paged + Clone, T: Described + Serialize>(
        &self,
        client: &Client,
        part: impl Into<Part>,
        query: Q,
        read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    ) -> Result<()> {
        self.list_asked(client, part, &Asked::one(query), read).await
    }

    /// The same of several questions.
    pub(super) async fn list_asked<Q: Paged + Clone, T: Described + Serialize>(
        &self,
        client: &Client,
        part: impl Into<Part>,
        asked: &Asked<Q, T>,
        read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    ) -> Result<()> {
        let part = part.into();
        let View { text, next, left_out } = view(client, &part, asked, read, (self, false)).await?;
        writeln!(io::stdout().lock(), "{text}")?;
        self.say_left_out(&left_out);
        part.say_where_it_ends(next.as_deref(), self.format);
        Ok(())
    }

    /// Shows a whole list.
    pub(super) fn show_all<T: Described + Serialize>(
        &self,
        mut things: Vec<T>,
        sorting: &Sorting,
    ) -> Result<()> {
        sorting.apply(&mut things)?;
        let mut left_out = Vec::new();
        self.format.print(&things[..], |things| {
            let (text, columns) = rows_fitted(things);
            left_out = columns;
            text
        })?;
        self.say_left_out(&left_out);
        Ok(())
    }

    fn say_left_out(&self, columns: &[&str]) {
        if !columns.is_empty() {
            let columns = columns.join(", ");
            self.hint(&format!(
                "Left out, for lack of room: {columns}. -o wide shows everything."
            ));
        }
    }

    /// Shows one thing.
    pub(super) fn show<T: Described + Serialize>(&self, thing: &T) -> Result<()> {
        self.format.print(thing, |thing| fields(details(thing)))
    }
}
