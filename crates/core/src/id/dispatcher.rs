//! The id of a dispatcher: `dispatcher-<project>-<task-queue>`. Pure.
//!
//! Names that are slugs make the plain id, in which the dashes of the project are doubled: the first odd run of dashes ends the
//! project, so the id can be written down by hand and read back. Others (capitals, blanks, other alphabets, great length), and task
//! queues that begin with a dash, get a suffix from a hash of both names behind a dot, which no slug holds. So an id is bounded,
//! readable, and two pairs never share one. The SQL function `stationmaster.dispatcher_id` says the same.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How every id begins, ours and those of older deployments.
const PREFIX: &str = "dispatcher-";
/// The most that an id shows of each name.
const SHOWN: usize = 40;
/// Characters of the hash: 64 bits.
const HASH: usize = 16;
/// The lengths that a random suffix of an older deployment may have.
const LEGACY_SUFFIX: std::ops::RangeInclusive<usize> = 6..=64;

/// Which dispatcher. Also the id of its workflow on the engine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct DispatcherId(pub String);

impl fmt::Display for DispatcherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl DispatcherId {
    /// The dispatcher of a project and task queue.
    #[must_use]
    pub fn of(project: &str, task_queue: &str) -> Self {
        let (p, q) = (slug(project), slug(task_queue));
        let plain = p == project && q == task_queue && !q.starts_with('-');
        Self(if plain {
            format!("{PREFIX}{}-{q}", p.replace('-', "--"))
        } else {
            format!("{PREFIX}{p}-{q}.{}", hash(project, task_queue))
        })
    }

    /// How the ids of older deployments' dispatchers of this project and task queue began; a random suffix followed.
    #[must_use]
    pub fn legacy_head(project: &str, task_queue: &str) -> String {
        format!("{PREFIX}{}-{}-", slug(project), slug(task_queue))
    }

    /// The heads that this id may have, if an older deployment gave it. Ids of ours have none: theirs follow a dot.
    pub fn legacy_heads(workflow_id: &str) -> impl Iterator<Item = &str> {
        let dashes = workflow_id.match_indices('-').map(|(at, _)| at + 1);
        dashes.filter_map(|end| {
            let (head, suffix) = workflow_id.split_at(end);
            let is_random = LEGACY_SUFFIX.contains(&suffix.len())
                && suffix.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
                && suffix.contains(|c: char| c.is_ascii_digit());
            is_random.then_some(head)
        })
    }
}

fn slug(name: &str) -> String {
    name.chars()
        .take(SHOWN)
        .map(|c| match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '_' | '-') => c,
            _ => '-',
        })
        .collect()
}

/// The length stands before the names, so that no two pairs read alike.
fn hash(project: &str, task_queue: &str) -> String {
    let text = format!("{}:{project}:{task_queue}", project.chars().count());
    let digest = Sha256::digest(text.as_bytes());
    let mut hex = String::with_capacity(HASH);
    for byte in &digest[..HASH / 2] {
        // Writing into a String does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_make_the_plain_id() {
        assert_eq!(DispatcherId::of("shop", "default").0, "dispatcher-shop-default");
        assert_eq!(
            DispatcherId::of("shop_2", "high-priority").0,
            "dispatcher-shop_2-high-priority"
        );
    }

    #[test]
    fn dashes_of_a_project_are_doubled_so_that_the_id_can_be_written_down() {
        for (project, queue, id) in [
            ("my-shop", "default", "dispatcher-my--shop-default"),
            ("my--shop", "a-b", "dispatcher-my----shop-a-b"),
            ("my-", "shop", "dispatcher-my---shop"),
            ("-", "shop", "dispatcher----shop"),
        ] {
            assert_eq!(DispatcherId::of(project, queue).0, id);
        }
        let dash_first = DispatcherId::of("my", "-shop").0;
        assert!(dash_first.starts_with("dispatcher-my--shop."), "{dash_first}");
    }

    #[test]
    fn names_that_are_no_slugs_get_a_suffix_of_their_own() {
        let ids = [
            ("a-b", "c"),
            ("a", "b-c"),
            ("A", "b-c"),
            ("a", "b c"),
            ("ä", "b-c"),
            ("a", "b.c"),
        ]
        .map(|(project, queue)| DispatcherId::of(project, queue).0);
        assert_eq!(ids[1], "dispatcher-a-b-c");
        assert_eq!(ids[0], "dispatcher-a--b-c");
        assert!(ids[2].starts_with("dispatcher-a-b-c."), "{}", ids[2]);
        let distinct: std::collections::HashSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    }

    #[test]
    fn ids_of_older_deployments_are_told_from_ours() {
        let head = DispatcherId::legacy_head("shop", "default");
        let legacy = |id: &str| DispatcherId::legacy_heads(id).any(|one| one == head);
        assert!(legacy("dispatcher-shop-default-2abC9dEf01"));
        assert!(legacy(
            "dispatcher-shop-default-5d41402a-bc4b-2a76-b971-9d911017c592"
        ));
        assert!(!legacy("dispatcher-shop-default"));
        assert!(!legacy("dispatcher-shop-default-"));
        assert!(
            !legacy("dispatcher-shop-default-orders"),
            "a task queue of its own, not a random suffix"
        );
        assert!(!legacy(&DispatcherId::of("Shop", "default").0));
        assert!(!legacy("dispatcher-shops-default-2abC9dEf01"));
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z]{1,3}",
            "[a-zA-Z0-9._ -]{1,8}",
            "[a-z-]{30,60}",
            "\\PC{1,20}"
        ]
    }

    proptest! {
        #[test]
        fn ids_are_bounded_and_of_a_small_alphabet(project in name(), queue in name()) {
            let id = DispatcherId::of(&project, &queue).0;
            prop_assert!(id.len() <= PREFIX.len() + 3 * SHOWN + 1);
            prop_assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c)), "{}", id);
        }

        #[test]
        fn two_pairs_never_share_an_id(a in name(), b in name(), c in name(), d in name()) {
            prop_assume!((&a, &b) != (&c, &d));
            prop_assert_ne!(DispatcherId::of(&a, &b), DispatcherId::of(&c, &d));
        }

        #[test]
        fn where_the_names_are_cut_does_not_matter(text in "[ab-]{3,8}", one in 1usize..3, other in 1usize..3) {
            prop_assume!(one != other);
            let (a, b) = text.split_at(one);
            let (c, d) = text.split_at(other);
            prop_assert_ne!(DispatcherId::of(a, b), DispatcherId::of(c, d));
        }
    }
}
