//! Cursors: where a page ended, in a form that callers cannot read and need not. Bound to its list and its filters, so a
//! cursor that was changed, or that belongs elsewhere, is refused instead of answering something odd.

use axum::Json;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use stationmaster_client::wire::Page;
use uuid::Uuid;

use super::problem::{Kind, Problem, Result};

/// Bytes of the seal.
const SEAL: usize = 8;
/// Things on a page when nobody says how many.
const USUAL: u32 = 50;
/// Things on a page at most.
const MOST: u32 = 500;

/// A list: its name and its filters, and which page of it is asked for.
pub(super) struct List {
    identity: Vec<u8>,
    cursor: Option<String>,
    limit: u32,
}

impl List {
    /// Filters are told by their words; the page's own fields, `limit` and `cursor`, are no part of them.
    pub(super) fn new(name: &str, query: &impl Serialize) -> Result<Self> {
        let mut filters = serde_json::to_value(query).unwrap_or_default();
        let mut take = |field| filters.as_object_mut()?.remove(field);
        let (cursor, limit) = (take("cursor"), take("limit"));
        let limit = limit.map_or(Some(USUAL), |limit| u32::try_from(limit.as_u64()?).ok());
        let limit = limit.filter(|limit| (1..=MOST).contains(limit));
        Ok(Self {
            identity: format!("{name} {filters}").into_bytes(),
            cursor: cursor.and_then(|cursor| cursor.as_str().map(str::to_owned)),
            limit: limit
                .ok_or_else(|| Problem::field("limit", format!("a page holds 1 to {MOST} things")))?,
        })
    }

    /// How many things go on the page.
    pub(super) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// How many rows to read: one more tells that there is another page.
    pub(super) fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// Where the page before ended, by the cursor that this list gave.
    pub(super) fn position<P: Position>(&self) -> Result<Option<P>> {
        let Some(cursor) = &self.cursor else {
            return Ok(None);
        };
        let bytes = URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default();
        let position = bytes
            .split_at_checked(SEAL)
            .filter(|(seal, position)| self.seal(position) == *seal)
            .and_then(|(_, position)| P::read(position));
        let words = "give the next_cursor of the page before, with the same filters, or none";
        position
            .map(Some)
            .ok_or_else(|| Problem::new(Kind::BadCursor, words))
    }

    /// The page of rows that were read one longer than asked for.
    pub(super) fn page<Row, P: Position>(
        &self,
        mut rows: Vec<Row>,
        position: impl Fn(&Row) -> P,
    ) -> Json<Page<Row>> {
        let more = rows.len() > self.limit();
        rows.truncate(self.limit());
        let next = rows.last().map(position).filter(|_| more);
        self.ending_at(rows, next)
    }

    /// A page, and where it ends when there is more.
    pub(super) fn ending_at<Row, P: Position>(&self, items: Vec<Row>, next: Option<P>) -> Json<Page<Row>> {
        let next_cursor = next.map(|next| self.cursor(&next.bytes()));
        Json(Page { items, next_cursor })
    }

    fn cursor(&self, position: &[u8]) -> String {
        let mut bytes = self.seal(position).to_vec();
        bytes.extend_from_slice(position);
        URL_SAFE_NO_PAD.encode(bytes)
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

/// Where a page ends: the place of its last thing in the order of the list.
pub(super) trait Position: Sized {
    fn bytes(&self) -> Vec<u8>;

    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Position for Uuid {
    fn bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_slice(bytes).ok()
    }
}

impl Position for i64 {
    fn bytes(&self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_be_bytes)
    }
}

impl Position for (i64, i64) {
    fn bytes(&self) -> Vec<u8> {
        [self.0.bytes(), self.1.bytes()].concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (one, other) = bytes.split_at_checked(size_of::<i64>())?;
        Some((i64::read(one)?, i64::read(other)?))
    }
}

impl Position for Timestamp {
    fn bytes(&self) -> Vec<u8> {
        self.as_microsecond().bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_microsecond(i64::read(bytes)?).ok()
    }
}

/// Names, outermost first.
impl<const N: usize> Position for [String; N] {
    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self[..]).unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Vec<String>>(bytes).ok()?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(name: &str, query: &serde_json::Value) -> List {
        List::new(name, query).unwrap()
    }

    #[test]
    fn a_cursor_leads_back_to_its_position_in_its_own_list_only() {
        let id = Uuid::now_v7();
        let cursor = list("queue", &json!({"status": "PENDING", "limit": 5})).cursor(&id.bytes());
        let same = list(
            "queue",
            &json!({"status": "PENDING", "limit": 9, "cursor": cursor}),
        );
        assert_eq!(same.position().unwrap(), Some(id));
        let other = list("queue", &json!({"status": "FAILED", "cursor": cursor}));
        assert!(other.position::<Uuid>().is_err());
        assert!(list("queue", &json!({})).position::<Uuid>().unwrap().is_none());
    }

    #[test]
    fn a_cursor_that_was_changed_is_refused() {
        let refused = |cursor: &str| {
            list("audit", &json!({"cursor": cursor}))
                .position::<i64>()
                .is_err()
        };
        let cursor = list("audit", &json!({})).cursor(&7_i64.bytes());
        assert!(!refused(&cursor));
        for at in 0..cursor.len() {
            let mut changed = cursor.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(refused(&changed), "{changed}");
        }
        for other in ["", "?", "AAAA"] {
            assert!(refused(other), "{other}");
        }
    }

    #[test]
    fn a_page_holds_at_least_one_thing_and_not_too_many() {
        assert!(List::new("audit", &json!({"limit": 0})).is_err());
        assert!(List::new("audit", &json!({"limit": MOST + 1})).is_err());
        assert_eq!(list("audit", &json!({"limit": MOST})).rows(), 501);
    }
}
