//! Lists: as many things as were asked for, page after page, and where they go on.

use anyhow::Result;
use serde_json::json;
use stationmaster_client::wire::Page;

use crate::output::Format;

/// Things on one page of the API, at most.
const PAGE: u32 = 500;

/// As much of a list as was asked for.
pub(super) struct Listed<T> {
    /// The things.
    pub(super) rows: Vec<T>,
    /// Where to go on; none: this was all.
    pub(super) next: Option<String>,
}

/// Reads page after page until there is enough: `page` is given a size and a cursor.
pub(super) async fn listed<T>(
    limit: u32,
    from: Option<&str>,
    mut page: impl AsyncFnMut(Option<u32>, Option<String>) -> stationmaster_client::Result<Page<T>>,
) -> Result<Listed<T>> {
    let (mut rows, mut next) = (Vec::new(), from.map(str::to_owned));
    loop {
        let missing = limit.saturating_sub(u32::try_from(rows.len())?);
        if missing == 0 {
            return Ok(Listed { rows, next });
        }
        let Page { items, next_cursor } = page(Some(missing.min(PAGE)), next).await?;
        rows.extend(items);
        next = next_cursor;
        if next.is_none() {
            return Ok(Listed { rows, next });
        }
    }
}

/// Says how to read on, beside the list: to people by the flag that takes it, to programs by name.
pub(super) fn say_where_it_ends(flag: &str, next: Option<&str>, format: Format) {
    match (next, format) {
        (None, _) => {}
        (Some(next), Format::People) => eprintln!("There is more: {flag} {next}"),
        (Some(next), Format::Json) => eprintln!("{}", json!({ "next_cursor": next })),
    }
}
