//! How many connections fit under the limit of open files. Whoever connects takes a descriptor, and so does whatever the work needs: the
//! database, the engine, targets of wakes. Connections get no more than leaves the work its own, or a crowd that asks for nothing would
//! keep a server from its database and cost it its lease.

use std::fs;

/// Where Linux tells a process its limits; elsewhere nothing is known, and nothing is held back.
const LIMITS: &str = "/proc/self/limits";

/// So many connections may be taken, of those that are wanted, beside what this process keeps open to its database.
pub(super) fn room_for(wanted: usize, database: usize) -> usize {
    let limit = fs::read_to_string(LIMITS).ok().and_then(|text| open_files(&text));
    let Some(limit) = limit else {
        return wanted;
    };
    let room = fitting(limit, database);
    if room < wanted {
        tracing::warn!(
            open_files = limit,
            wanted,
            room,
            "The limit of open files leaves room for fewer connections than http.max_connections: raise it, by LimitNOFILE= in a unit of \
             systemd or by ulimit -n"
        );
    }
    wanted.min(room)
}

/// A quarter of all, and what the database needs twice over, when connections to it are made anew before the old ones are gone, is not
/// for those who come.
fn fitting(limit: usize, database: usize) -> usize {
    (limit - limit / 4).saturating_sub(2 * database).max(1)
}

/// The limit that holds, from the kernel's table; `None`: there is none.
fn open_files(table: &str) -> Option<usize> {
    let line = table
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_read_and_no_limit_is_none() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max processes             95000                95000                processes \n\
                     Max open files            1024                 524288               files     \n";
        assert_eq!(open_files(table), Some(1024));
        assert_eq!(open_files(&table.replace("1024", "unlimited")), None);
        assert_eq!(open_files("nonsense"), None);
    }

    #[test]
    fn what_the_work_needs_is_kept_and_there_is_always_room_for_one() {
        assert_eq!(fitting(1024, 28), 712);
        assert_eq!(fitting(65_536, 28), 49_096);
        assert_eq!(fitting(32, 28), 1);
    }
}
