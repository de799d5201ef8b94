//! What this program was made from: its number, the commit, the tables that it needs and the zone data that it brings along.

use std::sync::LazyLock;

use stationmaster_core::schema;
use stationmaster_schedule::zone_data_version;

/// The number of the release.
pub(crate) const NUMBER: &str = env!("CARGO_PKG_VERSION");

/// The commit, where whoever built this said so (`cargo xtask dist` does).
pub(crate) const COMMIT: &str = match option_env!("STATIONMASTER_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// All of it, on lines of their own.
pub(crate) fn long() -> &'static str {
    static WORDS: LazyLock<String> = LazyLock::new(|| {
        let (schema, zones) = (schema::newest(), zone_data_version());
        format!("{NUMBER}\ncommit: {COMMIT}\nschema: {schema}\nzone data: {zones}")
    });
    &WORDS
}
