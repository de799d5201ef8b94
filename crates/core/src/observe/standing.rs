//! What is measured when somebody looks: how this process, its database and what is in it stand at that moment.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::{Measured, Metrics, Told, metrics, tell};

/// A gauge for each set of labels.
type By<const N: usize> = Family<[(&'static str, String); N], Measured>;

metrics! {
    /// See the module.
    pub(crate) struct StandingMetrics {
        gauge build: By<4>, "stationmaster_build_info"["version, commit, schema, zone_data"],
            "1; the labels tell what this server was made from";
        gauge zone_data_year: Gauge, "stationmaster_zone_data_year",
            "Year of the time zone data that this server brings along; 0: not known";
        gauge ready: Gauge, "stationmaster_ready",
            "1 while this server is ready, as /readyz tells it";
        gauge certificate: Told, "stationmaster_certificate_expires_timestamp_seconds",
            "When the certificate that the listener shows ends; absent without one";
        gauge clock_skew: Measured, "stationmaster_clock_skew_seconds",
            "By how much this server's clock is ahead of the database's, which decides";
        gauge servers: By<1>, "stationmaster_servers"["state"],
            "Servers on record whose lease holds (live) or has run out (lost)";
        gauge dispatchers: By<1>, "stationmaster_dispatchers"["state"],
            "Dispatchers that a server owns, that rest until a signal comes, or that are vacant";
        gauge unattended: Measured, "stationmaster_dispatchers_unattended",
            "Dispatchers for which signals wait and that no server owns";
        gauge full: Measured, "stationmaster_workspaces_full",
            "Workspaces whose slots are all in use while more may wait";
        gauge overdrawn: Measured, "stationmaster_workspaces_overdrawn",
            "Workspaces with more active executions than their counter says (should stay 0)";
        gauge strays: Measured, "stationmaster_stray_runs",
            "Runs that the engine holds open for our workspaces and that no row tells of (should stay 0): lost with a failover, or younger than a restored backup";
        gauge slots_used: By<1>, "stationmaster_workspace_slots_used"["workspace"],
            "Slots in use of the twenty workspaces that use most, and of all `(others)` together";
        gauge slots: By<1>, "stationmaster_workspace_slots"["workspace"],
            "Limits of the same workspaces";
        gauge connections: By<2>, "stationmaster_database_connections"["pool, state"],
            "Connections of this server: idle, in use, and how many there may be (limit)";
        gauge sessions: By<1>, "stationmaster_database_sessions"["state"],
            "Sessions of the whole database server, whoever has them (used), and how many there may be (limit)";
        gauge oldest_transaction: Measured, "stationmaster_database_oldest_transaction_seconds",
            "Age of the oldest transaction that keeps vacuum from cleaning up, as far as our role may see";
        gauge horizon: Measured, "stationmaster_database_horizon_transactions",
            "Transactions since the oldest snapshot that is held by a session, a prepared transaction or a replication slot";
        gauge lock_waits: Measured, "stationmaster_database_lock_waits",
            "Sessions of the database that wait for a lock of another";
        gauge dead_rows: By<1>, "stationmaster_database_dead_rows"["table"],
            "Dead rows of the tables that are written most, as PostgreSQL estimates them";
        gauge wal: Measured, "stationmaster_database_wal_bytes",
            "Position in the write-ahead log: it only grows, and how fast tells how much is written";
        counter cpu: Counter<f64, AtomicU64>, "stationmaster_process_cpu_seconds",
            "Processor time that this process took";
        gauge memory: Measured, "stationmaster_process_resident_memory_bytes",
            "Memory that this process holds";
        gauge files: Measured, "stationmaster_process_open_fds",
            "Files and sockets that this process has open";
        gauge most_files: Measured, "stationmaster_process_max_fds",
            "How many it may have";
        gauge started_at: Measured, "stationmaster_process_start_time_seconds",
            "When this server started";
    }
}

/// How the database stands. What is not known is not a number.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) skew: f64,
    /// Live, lost.
    pub(crate) servers: [f64; 2],
    /// Owned, resting, vacant, and of those the ones for which signals wait.
    pub(crate) dispatchers: [f64; 4],
    /// Full, overdrawn.
    pub(crate) workspaces: [f64; 2],
    pub(crate) strays: f64,
    /// Names, slots in use, limits.
    pub(crate) slots: Vec<(String, f64, f64)>,
    /// Oldest transaction, horizon, waits for locks, position of the log.
    pub(crate) database: [f64; 4],
    /// Used, limit.
    pub(crate) sessions: [f64; 2],
    pub(crate) dead_rows: Vec<(String, f64)>,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            skew: f64::NAN,
            servers: [f64::NAN; 2],
            dispatchers: [f64::NAN; 4],
            workspaces: [f64::NAN; 2],
            strays: f64::NAN,
            slots: Vec::new(),
            database: [f64::NAN; 4],
            sessions: [f64::NAN; 2],
            dead_rows: Vec::new(),
        }
    }
}

/// Connections of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connections {
    pub(crate) pool: &'static str,
    pub(crate) idle: f64,
    pub(crate) in_use: f64,
    pub(crate) limit: f64,
}

fn set<const N: usize>(gauges: &By<N>, labels: [(&'static str, &str); N], value: f64) {
    let labels = labels.map(|(name, value)| (name, value.to_owned()));
    gauges.get_or_create(&labels).set(value);
}

impl StandingMetrics {
    pub(crate) fn stands(&self, found: &Standing) {
        self.clock_skew.set(found.skew);
        for (state, count) in ["live", "lost"].into_iter().zip(found.servers) {
            set(&self.servers, [("state", state)], count);
        }
        for (state, count) in ["owned", "resting", "vacant"].into_iter().zip(found.dispatchers) {
            set(&self.dispatchers, [("state", state)], count);
        }
        self.unattended.set(found.dispatchers[3]);
        let [full, overdrawn] = found.workspaces;
        self.full.set(full);
        self.overdrawn.set(overdrawn);
        self.strays.set(found.strays);
        // Those that were among the first before and are not any more must go.
        self.slots_used.clear();
        self.slots.clear();
        for (workspace, used, limit) in &found.slots {
            set(&self.slots_used, [("workspace", workspace)], *used);
            set(&self.slots, [("workspace", workspace)], *limit);
        }
        let [oldest, horizon, lock_waits, wal] = found.database;
        self.oldest_transaction.set(oldest);
        self.horizon.set(horizon);
        self.lock_waits.set(lock_waits);
        self.wal.set(wal);
        for (state, count) in ["used", "limit"].into_iter().zip(found.sessions) {
            set(&self.sessions, [("state", state)], count);
        }
        self.dead_rows.clear();
        for (table, rows) in &found.dead_rows {
            set(&self.dead_rows, [("table", table)], *rows);
        }
    }

    pub(crate) fn connected(&self, pools: &[Connections]) {
        for pool in pools {
            for (state, count) in [
                ("idle", pool.idle),
                ("in_use", pool.in_use),
                ("limit", pool.limit),
            ] {
                set(&self.connections, [("pool", pool.pool), ("state", state)], count);
            }
        }
    }

    pub(crate) fn ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }

    /// What the system says of this process; where it says nothing, nothing is told.
    pub(crate) fn process(&self) {
        let Some(process) = Process::look() else { return };
        self.cpu
            .inner()
            .store(process.cpu_seconds.to_bits(), Ordering::Relaxed);
        self.memory.set(process.resident_bytes);
        self.files.set(process.open_files);
        self.most_files.set(process.most_files);
    }
}

impl Metrics {
    /// This server starts, and was made from these.
    pub fn made_from(&self, version: &str, commit: &str, schema: &str, zone_data: &str) {
        let labels = [
            ("version", version),
            ("commit", commit),
            ("schema", schema),
            ("zone_data", zone_data),
        ];
        self.standing.build.clear();
        set(&self.standing.build, labels, 1.0);
        let now = jiff::Timestamp::now();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit")]
        self.standing.started_at.set(now.as_millisecond() as f64 / 1e3);
        let year = zone_data.get(..4).and_then(|year| year.parse().ok());
        self.standing.zone_data_year.set(year.unwrap_or_default());
    }

    /// When the certificate ends that is shown now, in seconds since 1970.
    pub fn certificate_ends(&self, at: Option<f64>) {
        tell(&self.standing.certificate, at);
    }
}

struct Process {
    cpu_seconds: f64,
    resident_bytes: f64,
    open_files: f64,
    most_files: f64,
}

impl Process {
    /// Linux tells it in files. Times are in hundredths of a second and memory in pages of 4 KiB on every machine that we know.
    #[expect(clippy::cast_precision_loss, reason = "far fewer")]
    fn look() -> Option<Self> {
        const TICKS: f64 = 100.0;
        const PAGE: f64 = 4096.0;
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program may hold anything, and ends with the last bracket.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
        let most = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))?;
        let most = most.split_whitespace().next()?;
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / TICKS,
            resident_bytes: field(24)? * PAGE,
            open_files: std::fs::read_dir("/proc/self/fd").ok()?.count() as f64,
            most_files: most.parse().unwrap_or(f64::INFINITY),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_knows_itself() {
        let process = Process::look().unwrap();
        assert!(process.resident_bytes > 1e6 && process.open_files >= 3.0);
        assert!(process.most_files >= process.open_files);
        assert!(process.cpu_seconds >= 0.0);
    }

    #[test]
    fn a_workspace_that_is_not_among_the_first_any_more_is_not_told() {
        let metrics = Metrics::new();
        for name in ["a", "b"] {
            let slots = vec![(name.to_owned(), 1.0, 2.0)];
            metrics.standing.stands(&Standing {
                slots,
                ..Standing::default()
            });
        }
        let text = metrics.render();
        assert!(
            text.contains("stationmaster_workspace_slots_used{workspace=\"b\"} 1.0"),
            "{text}"
        );
        assert!(!text.contains("workspace=\"a\""), "{text}");
    }
}
