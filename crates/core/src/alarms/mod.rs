//! The alarms lane: schedules become occurrences, and occurrences become wakes, at least once, in time, never silently.
//!
//! ```text
//! set -> [standing: next instant] -> claim -> [occurrence open, leased] -> deliver -> settle -> [occurrence finished]
//!              ^    (series moves on)  |              ^                      |
//!              +-----------------------+              +--- retry, release ---+
//!                                                     +--- recover (the holder is gone)
//! ```
//!
//! The occurrence, with its nominal instant, is committed before the first wake, and its id is the same in every try (I2).
//! The series moves on when an occurrence is made, not when it is settled: an occurrence that is tried again and again
//! neither delays nor loses the following ones, unless the overlap policy says so.
//!
//! Reading order: `terms` and `late` (pure: policies, what a late series does), [`set`] and `when`, `claim` (the loop), `lease` (its
//! transaction), `target`, `deliver`, `settle`, then the passes that mend: `recover`, `planner`, `housekeeping`; then what people
//! do: [`operate`], [`edit`], [`backfill`], [`inspect`], [`keys`]; and `assembly`, which puts the lane together on what its tasks
//! share, `context`.

use std::time::Duration;

use url::Url;

use crate::wake::Client;
use crate::wake::guard::{Allowed, Guard};
use crate::wake::signature::Secret;

mod assembly;
pub mod backfill;
mod bounds;
pub mod calendar;
mod claim;
mod context;
mod deliver;
pub mod edit;
mod history;
mod housekeeping;
pub mod inspect;
pub mod keys;
pub mod ladder;
mod lane;
mod late;
mod lease;
pub mod measure;
pub mod operate;
mod planner;
mod recover;
pub mod set;
mod settle;
mod target;
mod terms;
mod when;

pub(crate) use assembly::Alarms;
use context::AlarmsContext;
use lane::BACKLOG;
pub use terms::{AlarmKind, AlarmStatus, MisfirePolicy, OccurrenceStatus, Origin, Overlap, Wrong};

/// The path of the router that wakes go to.
const ROUTER_PATH: &str = "internal/wake";

/// A remembered plan expects a handful of rows and compares each with each; beyond this many, a statement is planned for
/// the rows that it has.
const FEW_ROWS: usize = 32;

/// How the lane behaves. Validated by whoever makes it; the defaults are the product's.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where wakes go that name no target; they go to its path `/internal/wake`.
    pub router_url: Option<Url>,
    /// Look for work this often even when nothing is known to be due.
    pub tick: Duration,
    /// How long a claim holds; longer than a delivery may take.
    pub lease: Duration,
    /// What one claim takes; under a backlog, four times as much.
    pub batch_size: usize,
    /// Wakes under way at once.
    pub concurrency: usize,
    /// Of these, to one target.
    pub per_target: usize,
    /// How long one wake may take.
    pub delivery_timeout: Duration,
    /// Tries, of alarms that do not say.
    pub max_failures: u32,
    /// Late by more than this is missed, and the misfire policy decides.
    pub misfire_grace: Duration,
    /// How far back missed occurrences are made up for, of alarms that do not say.
    pub misfire_window: Duration,
    /// Targets that need not be public. The router needs not, where an alarm names no target.
    pub allow_targets: Vec<Allowed>,
    /// The secrets that sign wakes are derived from it; it signs none itself.
    pub signing_secret: Option<Secret>,
    /// The one before, while receivers change over.
    pub previous_secret: Option<Secret>,
    /// How long settled occurrences and ended alarms are kept.
    pub retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            router_url: None,
            tick: Duration::from_secs(1),
            lease: Duration::from_mins(2),
            batch_size: 100,
            concurrency: 512,
            per_target: 32,
            delivery_timeout: Duration::from_secs(30),
            max_failures: 5,
            misfire_grace: Duration::from_secs(30),
            misfire_window: Duration::from_hours(24),
            allow_targets: Vec::new(),
            signing_secret: None,
            previous_secret: None,
            retention: Duration::from_hours(30 * 24),
        }
    }
}

impl Settings {
    /// Where wakes go that name no target.
    fn router_target(&self) -> Option<Url> {
        let mut url = self.router_url.clone()?;
        if !url.path().trim_end_matches('/').ends_with(ROUTER_PATH) {
            let path = format!("{}/{ROUTER_PATH}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        Some(url)
    }

    fn guard(&self) -> Guard {
        Guard::new(self.allow_targets.clone())
    }
}

/// What a server needs to run the lane.
pub struct Setup {
    settings: Settings,
    client: Client,
}

impl Setup {
    /// Makes the client that sends the wakes.
    pub fn new(settings: Settings) -> Result<Self, reqwest::Error> {
        if settings.signing_secret.is_none() {
            tracing::warn!("Wakes are not signed: alarms.signing_secret is not set");
        }
        let client = Client::new(settings.guard(), settings.per_target)?;
        Ok(Self { settings, client })
    }

    /// Deliveries that may be under way at once: what is claimed is sent or given back, and waits for nobody here.
    fn parallel(&self) -> usize {
        self.settings.concurrency + BACKLOG * self.settings.batch_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_router_is_called_at_its_own_path() {
        let target = |router: &str| {
            let settings = Settings {
                router_url: Some(router.parse().unwrap()),
                ..Settings::default()
            };
            settings.router_target().unwrap().to_string()
        };
        assert_eq!(target("http://router:9000"), "http://router:9000/internal/wake");
        assert_eq!(
            target("http://router:9000/api/"),
            "http://router:9000/api/internal/wake"
        );
        assert_eq!(
            target("http://router/internal/wake"),
            "http://router/internal/wake"
        );
    }
}
