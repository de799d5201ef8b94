//! Folders for servers that live as long as one test run: a fresh name each time, in a place that the server can reach,
//! and no heap of leftovers from runs that were killed.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::account::reachable;
use crate::lock::Lock;
use crate::settings::{Afterwards, Durability, Settings};

const PREFIX: &str = "stationmaster-postgres-";

/// A younger folder may be between its making and its locking.
const LEFT_OVER_FROM: Duration = Duration::from_mins(1);

impl Settings {
    /// A fast server in a fresh folder that is deleted in the end: in the preferred directory or, where the server's
    /// account cannot enter that one (root's home, for instance), in the system's directory for temporary files.
    ///
    /// Folders that killed processes left behind in the same place are deleted too.
    pub fn throw_away(preferred_parent: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let parent = match reachable(preferred_parent) {
            Ok(()) => preferred_parent.to_path_buf(),
            Err(_) => env::temp_dir(),
        };
        remove_leftovers(&parent);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{PREFIX}{}-{count}", std::process::id()));
        Self {
            durability: Durability::Fast,
            afterwards: Afterwards::Remove,
            ..Self::durable(folder)
        }
    }
}

/// Deletes folders of ours that nobody owns. What cannot be deleted is left: it is only untidy.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let folder = entry.path();
        let lock = crate::folder::lock(&folder);
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // The lock file is the first to come and may be the first to go, when somebody was killed while deleting.
        let old = || {
            age(&lock)
                .or_else(|| age(&folder))
                .is_some_and(|age| age > LEFT_OVER_FROM)
        };
        if ours && old() && Lock::take(&lock, &folder).is_ok() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

fn age(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}
