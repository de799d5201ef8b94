//! A trial of alerts: they are silent, a fault is caused, they fire, the fault is mended, they are silent again.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::FAULTS;
use crate::hurry::hurried;
use crate::runbook::{Place, follow, mend};
use crate::support::eventually;
use crate::support::prometheus::{Prometheus, Scrapes};

/// Longer than any alert takes to fire or to clear, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);
const PAUSE: Duration = Duration::from_millis(250);

/// Where `cargo xtask alerts` reads what came of it.
const REPORT: &str = "STATIONMASTER_ALERTS_REPORT";

/// A Prometheus that watches servers by the hurried rules.
pub(crate) struct Watch(Prometheus);

/// See the module.
pub(crate) struct Trial<'a> {
    watch: &'a Watch,
    alerts: &'a [&'static str],
    caused_at: Instant,
    fired_after: Vec<Duration>,
}

impl Watch {
    pub(crate) async fn on(servers: &[&str], every: Duration) -> Self {
        Self::with(servers, every, false).await
    }

    pub(crate) async fn with(servers: &[&str], every: Duration, tls: bool) -> Self {
        let rules = hurried(&repository_file("ops/prometheus/alerts.yml"));
        let scrapes = Scrapes {
            servers,
            every,
            rules: &rules,
            tls,
        };
        Self(Prometheus::start(&scrapes).await)
    }

    /// Begins a trial of alerts that do not fire yet; the fault is caused right after this.
    pub(crate) async fn begin<'a>(&'a self, alerts: &'a [&'static str]) -> Trial<'a> {
        self.until(alerts, "is silent before its fault", |firing, alert| {
            !firing.contains(alert)
        })
        .await;
        Trial {
            watch: self,
            alerts,
            caused_at: Instant::now(),
            fired_after: Vec::new(),
        }
    }

    /// Nothing fires for so long, apart from what others may be the cause of.
    pub(crate) async fn stays_quiet(&self, long: Duration, others: &[&str]) {
        // Until the first server was scraped there is none, by the rules.
        eventually("a server was seen, and that was noticed", async || {
            let ready = self.0.ask("stationmaster_ready == 1").await;
            ready.is_ok_and(|servers| servers > 0) && !self.0.firing().await.contains("NoServer")
        })
        .await;
        let begun = Instant::now();
        while begun.elapsed() < long {
            let mut firing = self.0.firing().await;
            firing.retain(|alert| !others.contains(&alert.as_str()));
            assert!(firing.is_empty(), "after {:.0?}: {firing:?}", begun.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// When each of the alerts was first so.
    async fn until(
        &self,
        alerts: &[&str],
        what: &str,
        is_so: impl Fn(&BTreeSet<String>, &str) -> bool,
    ) -> Vec<Instant> {
        let begun = Instant::now();
        let mut seen: Vec<Option<Instant>> = vec![None; alerts.len()];
        loop {
            let firing = self.0.firing().await;
            for (alert, seen) in alerts.iter().zip(&mut seen) {
                if seen.is_none() && is_so(&firing, alert) {
                    *seen = Some(Instant::now());
                    println!("{alert} {what}, after {:.0?}", begun.elapsed());
                }
            }
            if let Some(all) = seen.iter().copied().collect() {
                return all;
            }
            let missing: Vec<_> = alerts
                .iter()
                .zip(&seen)
                .filter(|(_, seen)| seen.is_none())
                .collect();
            assert!(
                begun.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: each {what}; missing: {missing:?}; firing: {firing:?}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Trial<'_> {
    /// Waits until all of them have fired, and looks as their runbooks say.
    pub(crate) async fn fire(&mut self, place: &Place) {
        let fired = self.watch.until(self.alerts, "fires", BTreeSet::contains).await;
        self.fired_after = fired.iter().map(|at| *at - self.caused_at).collect();
        for alert in self.alerts {
            follow(alert, place).await;
        }
    }

    /// Mends them by the commands that their runbooks print, and by nothing else.
    pub(crate) async fn mend(&self, place: &Place) {
        for alert in self.alerts {
            mend(alert, place).await;
        }
    }

    /// The fault was mended just now: waits until all of them are over, and tells how long all of it took.
    pub(crate) async fn clear(self) {
        let mended_at = Instant::now();
        let over = self
            .watch
            .until(self.alerts, "is over", |firing, alert| !firing.contains(alert))
            .await;
        for ((alert, fired), over) in self.alerts.iter().zip(&self.fired_after).zip(over) {
            tell(alert, *fired, over - mended_at);
        }
    }
}

/// A row of the table.
fn tell(alert: &str, fired_after: Duration, cleared_after: Duration) {
    let fault = FAULTS.iter().find(|(known, _)| *known == alert);
    let (_, fault) = fault.unwrap_or_else(|| panic!("{alert} is not among the faults"));
    let row = format!(
        "| `Stationmaster{alert}` | {fault} | {:.0} s | {:.0} s |",
        fired_after.as_secs_f64(),
        cleared_after.as_secs_f64()
    );
    println!("{row}");
    if let Ok(path) = std::env::var(REPORT) {
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "{row}").unwrap();
    }
}

/// A file of the repository.
pub(crate) fn repository_file(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
