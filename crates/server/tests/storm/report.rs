//! What came of it, for people and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::Storm;
use crate::check::Violation;
use crate::watch::Seen;
use crate::world::World;

/// So many violations of one promise are told.
const TOLD: usize = 10;

pub(crate) struct Report {
    storm: Storm,
    faults: BTreeMap<&'static str, usize>,
    figures: BTreeMap<&'static str, usize>,
    /// Rooms that were seen with every slot in use.
    full: usize,
    violations: Vec<Violation>,
}

impl Report {
    pub(crate) fn new(storm: &Storm, world: &World, seen: &Seen, violations: Vec<Violation>) -> Self {
        let books = world.ledger.open();
        let ends = |status: &str| {
            let ended = seen
                .executions
                .values()
                .filter_map(|execution| execution.ended.as_ref());
            ended.filter(|ended| ended.status == status).count()
        };
        let recorded = |status: &str| {
            let recorded = seen.occurrences.values();
            recorded.filter(|occurrence| occurrence.status == status).count()
        };
        let figures = BTreeMap::from([
            (
                "items acknowledged",
                books.items.values().filter(|asked| asked.item.is_some()).count(),
            ),
            (
                "items in doubt",
                books.items.values().filter(|asked| asked.item.is_none()).count(),
            ),
            ("executions", seen.executions.len()),
            ("executions completed", ends("COMPLETED")),
            ("executions failed as asked", ends("FAILED")),
            ("executions cancelled", ends("CANCELLED")),
            ("calls of nodes", world.receiver.calls().len()),
            (
                "calls whose caller was lost",
                world
                    .receiver
                    .calls()
                    .iter()
                    .filter(|call| call.until.is_none())
                    .count(),
            ),
            (
                "signals acknowledged",
                books
                    .signals
                    .values()
                    .filter(|signal| signal.acknowledged)
                    .count(),
            ),
            ("alarms for once", books.once.len()),
            ("wakes accepted", world.receiver.wakes().len()),
            ("occurrences fired", recorded("fired")),
            ("occurrences coalesced", recorded("coalesced")),
            ("occurrences skipped", recorded("skipped")),
            ("locks held", books.holdings.len()),
            ("looks at slots", seen.looks),
            ("looks at rows", seen.rounds),
        ]);
        Self {
            storm: storm.clone(),
            faults: books.faults.clone(),
            figures,
            full: seen.full.len(),
            violations,
        }
    }

    pub(crate) fn print(&self) {
        eprintln!("\nfaults:");
        for (fault, count) in &self.faults {
            eprintln!("{count:>8}  {fault}");
        }
        eprintln!("seen:");
        for (figure, count) in &self.figures {
            eprintln!("{count:>8}  {figure}");
        }
        for (promise, broken) in self.by_promise() {
            eprintln!("\nBROKEN: {promise} ({} times)", broken.len());
            for violation in broken.iter().take(TOLD) {
                eprintln!("  {}", violation.what);
            }
        }
        if self.violations.is_empty() {
            eprintln!("\nno promise was broken (seed {})", self.storm.seed);
        }
    }

    fn by_promise(&self) -> BTreeMap<&'static str, Vec<&Violation>> {
        let mut by_promise: BTreeMap<&'static str, Vec<&Violation>> = BTreeMap::new();
        for violation in &self.violations {
            by_promise.entry(violation.promise).or_default().push(violation);
        }
        by_promise
    }

    pub(crate) fn json(&self) -> String {
        let broken: Vec<_> = self
            .violations
            .iter()
            .map(|violation| json!({ "promise": violation.promise, "what": violation.what }))
            .collect();
        let report = json!({
            "seed": self.storm.seed,
            "seconds": self.storm.length.as_secs(),
            "servers": self.storm.servers,
            "engine": format!("{:?}", self.storm.engine).to_lowercase(),
            "faults": self.faults,
            "seen": self.figures,
            "violations": broken,
        });
        format!("{report:#}\n")
    }

    /// A storm that touched nothing shows nothing.
    pub(crate) fn assert_busy(&self) {
        let figure = |name: &str| self.figures.get(name).copied().unwrap_or_default();
        let wanted = [
            ("executions completed", 50),
            ("executions failed as asked", 5),
            ("signals acknowledged", 20),
            ("alarms for once", 15),
            ("occurrences fired", 15),
            ("locks held", 20),
            ("looks at slots", 100),
        ];
        for (name, least) in wanted {
            assert!(figure(name) >= least, "{name}: only {}", figure(name));
        }
        for fault in [
            "kill -9",
            "SIGSTOP past the lease",
            "SIGTERM",
            "crash of PostgreSQL",
            "cut",
            "silence",
            "half open",
            "delay",
            "throttle",
            "cancel",
        ] {
            assert!(self.faults.contains_key(fault), "no {fault} in {:?}", self.storm);
        }
        let missed = figure("occurrences coalesced") + figure("occurrences skipped");
        assert!(missed > 0, "no instant was ever missed");
        assert!(self.full > 0, "no room was ever full");
        assert!(self.storm.length > Duration::ZERO);
    }

    pub(crate) fn assert_calm(&self) {
        let broken: Vec<&str> = self.by_promise().into_keys().collect();
        assert!(
            broken.is_empty(),
            "seed {}: {} violations, told above, of {broken:?}",
            self.storm.seed,
            self.violations.len()
        );
    }
}
