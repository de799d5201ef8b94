//! Cursors: where a page ended, in a form that callers cannot read and need not. Bound to its list and its filters, so a
//! cursor that was changed, or that belongs elsewhere, is refused instead of answering something odd.

use axum::Json;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use stationmaster_client::wire::Page;

use super::problem::{Kind, Problem};

/// Bytes of the seal.
const SEAL: usize = 8;
/// Things on a page when nobody says how many.
const USUAL: u32 = 50;
/// Things on a page at most.
const MOST: u32 = 500;

/// A list: its name and its filters.
pub(super) struct List {
    identity: Vec<u8>,
}

impl List {
    /// Filters are told by their words; the page's own fields are no part of them.
    pub(super) fn new(name: &str, filters: &impl Serialize) -> Self {
        let mut identity = serde_json::to_value(filters).unwrap_or_default();
        if let Some(fields) = identity.as_object_mut() {
            fields.remove("cursor");
            fields.remove("limit");
        }
        Self {
            identity: format!("{name} {identity}").into_bytes(),
        }
    }

    /// A cursor for this position.
    pub(super) fn cursor(&self, position: &[u8]) -> String {
        let mut bytes = self.seal(position).to_vec();
        bytes.extend_from_slice(position);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a cursor that this list gave.
    pub(super) fn position<T>(
        &self,
        cursor: Option<&str>,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(cursor) = cursor else { return Ok(None) };
        let bytes = URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default();
        let position = bytes
            .split_at_checked(SEAL)
            .filter(|(seal, position)| self.seal(position) == *seal)
            .and_then(|(_, position)| read(position));
        let words = "give the next_cursor of the page before, with the same filters, or none";
        position
            .map(Some)
            .ok_or_else(|| Problem::new(Kind::BadCursor, words))
    }

    /// The page of rows that were read one longer than asked for, told on the wire.
    pub(super) fn page<Row, Told>(
        &self,
        rows: Vec<Row>,
        limit: u32,
        position: impl Fn(&Row) -> Vec<u8>,
        tell: impl Fn(Row) -> Told,
    ) -> Json<Page<Told>> {
        let (rows, next) = cut(rows, limit, position);
        Json(Page {
            items: rows.into_iter().map(tell).collect(),
            next_cursor: next.map(|next| self.cursor(&next)),
        })
    }

    fn seal(&self, position: &[u8]) -> [u8; SEAL] {
        let mut hash = Sha256::new();
        hash.update((self.identity.len() as u64).to_be_bytes());
        hash.update(&self.identity);
        hash.update(position);
        let mut seal = [0; SEAL];
        seal.copy_from_slice(&hash.finalize()[..SEAL]);
        seal
    }
}

/// How many things go on a page.
pub(super) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(USUAL) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(Problem::field(
            "limit",
            format!("a page holds 1 to {MOST} things"),
        )),
    }
}

/// An id as a position.
pub(super) fn uuid(bytes: &[u8]) -> Option<uuid::Uuid> {
    uuid::Uuid::from_slice(bytes).ok()
}

/// A number as a position.
pub(super) fn number(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}

/// Cuts a page that was read one row longer than asked for: the rows, and the position of the last when there is more.
pub(super) fn cut<T>(
    mut rows: Vec<T>,
    limit: u32,
    position: impl Fn(&T) -> Vec<u8>,
) -> (Vec<T>, Option<Vec<u8>>) {
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().map(position).filter(|_| more);
    (rows, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_position_in_its_own_list_only() {
        let list = List::new("queue", &serde_json::json!({"status": "PENDING", "limit": 5}));
        let same = List::new("queue", &serde_json::json!({"status": "PENDING", "limit": 9}));
        let other = List::new("queue", &serde_json::json!({"status": "FAILED"}));
        let id = uuid::Uuid::now_v7();
        let cursor = list.cursor(id.as_bytes());
        assert_eq!(same.position(Some(&cursor), uuid).unwrap(), Some(id));
        assert!(other.position(Some(&cursor), uuid).is_err());
        assert!(list.position(None, uuid).unwrap().is_none());
    }

    #[test]
    fn a_cursor_that_was_changed_is_refused() {
        let list = List::new("audit", &());
        let cursor = list.cursor(&7_i64.to_be_bytes());
        for at in 0..cursor.len() {
            let mut changed = cursor.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(list.position(Some(&changed), number).is_err(), "{changed}");
        }
        for other in ["", "?", "AAAA"] {
            assert!(list.position(Some(other), number).is_err(), "{other}");
        }
    }
}
