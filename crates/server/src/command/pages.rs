//! Lists: as many things as were asked for, page after page, and where they go on. Every list is shown the same way; what is
//! seen of a thing is told by its columns.

use std::io::{self, Write as _};

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use stationmaster_client::wire::Page;
use stationmaster_client::{Client, Paged};

use super::Context;
use crate::failure::say;
use crate::output::{Described, Format, details, fields, rows_in};

/// Things on one page of the API, at most.
const PAGE: u32 = 500;

/// How much of a list whose newest things come first, and how much of it may be asked for.
#[derive(Debug, Args)]
pub(crate) struct Newest<const MOST: i64 = 1_000> {
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=MOST))]
    limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    before: Option<String>,
}

/// How much of a list in the order of ids.
#[derive(Debug, Args)]
pub(crate) struct InOrder {
    /// At most so many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    after: Option<String>,
}

/// How much of a list, from where, and by which flag one reads on.
pub(super) struct Part {
    limit: u32,
    from: Option<String>,
    flag: &'static str,
}

impl<const MOST: i64> From<Newest<MOST>> for Part {
    fn from(Newest { limit, before }: Newest<MOST>) -> Self {
        Self {
            limit,
            from: before,
            flag: "--before",
        }
    }
}

impl From<InOrder> for Part {
    fn from(InOrder { limit, after }: InOrder) -> Self {
        Self {
            limit,
            from: after,
            flag: "--after",
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
        }
    }

    /// Says how to read on, beside the list: to people by the flag that takes it, to programs by name.
    pub(super) fn say_where_it_ends(&self, next: Option<&str>, format: Format) {
        match (next, format) {
            (None, _) => {}
            (Some(next), Format::People) => say(format_args!("There is more: {} {next}", self.flag)),
            (Some(next), Format::Json) => say(json!({ "next_cursor": next })),
        }
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

/// A list as it is now; `again`: it will be shown again.
pub(super) async fn view<Q: Paged, T: Described + Serialize>(
    client: &Client,
    part: &Part,
    query: Q,
    read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    (context, again): (&Context, bool),
) -> Result<View> {
    let Listed { rows: things, next } = listed(client, part, query, read).await?;
    let text = context
        .format
        .view(&things[..], again, |things| rows_in(things, context.width))?;
    Ok(View { text, next })
}

impl Context {
    /// Shows a part of a list.
    pub(super) async fn list<Q: Paged, T: Described + Serialize>(
        &self,
        client: &Client,
        part: impl Into<Part>,
        query: Q,
        read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    ) -> Result<()> {
        let part = part.into();
        let View { text, next } = view(client, &part, query, read, (self, false)).await?;
        writeln!(io::stdout().lock(), "{text}")?;
        part.say_where_it_ends(next.as_deref(), self.format);
        Ok(())
    }

    /// Shows a whole list.
    pub(super) fn show_all<T: Described + Serialize>(&self, things: &[T]) -> Result<()> {
        self.format.print(things, |things| rows_in(things, self.width))
    }

    /// Shows one thing.
    pub(super) fn show<T: Described + Serialize>(&self, thing: &T) -> Result<()> {
        self.format.print(thing, |thing| fields(details(thing)))
    }
}
