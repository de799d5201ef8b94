//! How a server is to run, and the configuration that follows from it. Pure: reads no file and starts nothing.

use std::path::PathBuf;

use nix::sys::signal::Signal;

/// What a private server is to be like. Begin with [`Settings::durable`] or [`Settings::throw_away`] and change fields.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder for everything that belongs to this server: data, password, log, lock, socket. It is made when it
    /// does not exist. A folder with other things in it is refused.
    pub folder: PathBuf,
    /// Whether what is committed survives a power cut.
    pub durability: Durability,
    /// The port on loopback; `None` takes a free one.
    pub port: Option<u16>,
    /// How many clients can be connected at once.
    pub max_connections: u16,
    /// Further configuration parameters (name, value); they win over those of this crate.
    pub extra: Vec<(String, String)>,
    /// What becomes of the folder when the [`crate::Server`] goes.
    pub afterwards: Afterwards,
}

/// Whether what is committed survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// As in production: a commit is on the disk before it is reported.
    Durable,
    /// Nothing is forced to the disk, for tests that do not cut the power. Data still survives the end of processes.
    Fast,
}

/// What becomes of the folder when the server goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// The folder stays for the next run.
    Keep,
    /// The folder is deleted.
    Remove,
}

/// How a running server is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Clients are disconnected, then everything is written and the server ends in order.
    Fast,
    /// The server drops everything at once, as in a crash; the next start recovers from the log.
    Immediate,
}

impl Settings {
    /// A server whose data is kept between runs.
    pub fn durable(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            durability: Durability::Durable,
            port: None,
            max_connections: 100,
            extra: Vec::new(),
            afterwards: Afterwards::Keep,
        }
    }

    /// The configuration parameters, in the order in which they are given to the server: a later one wins.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        let flushing: &[(&str, &str)] = match self.durability {
            Durability::Durable => &[("fsync", "on"), ("full_page_writes", "on")],
            Durability::Fast => &[("fsync", "off"), ("full_page_writes", "off")],
        };
        let own = SHARED_PARAMETERS
            .iter()
            .chain(flushing)
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let connections = ("max_connections".to_owned(), self.max_connections.to_string());
        own.chain([connections])
            .chain(self.extra.iter().cloned())
            .collect()
    }
}

/// Modest tuning for a machine that also does other work, and the parts that must not depend on the machine's locale.
const SHARED_PARAMETERS: &[(&str, &str)] = &[
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    ("log_line_prefix", "%m [%p] "),
    ("logging_collector", "off"),
    ("password_encryption", "scram-sha-256"),
    // Also where nothing is flushed: it is cheap there, and without it the end of the process loses commits.
    ("synchronous_commit", "on"),
    ("shared_buffers", "256MB"),
    ("min_wal_size", "256MB"),
    ("max_wal_size", "2GB"),
    ("checkpoint_timeout", "15min"),
    ("log_checkpoints", "off"),
    // Small tables that change all the time live from frequent cleaning.
    ("autovacuum_naptime", "10s"),
    ("random_page_cost", "1.1"),
    // Compiling a statement costs more than running any of ours.
    ("jit", "off"),
];

impl Durability {
    /// How a server ends when nobody asked for a particular way: a fast test server has nothing worth a checkpoint.
    pub(crate) fn usual_shutdown(self) -> Shutdown {
        match self {
            Self::Durable => Shutdown::Fast,
            Self::Fast => Shutdown::Immediate,
        }
    }
}

impl Shutdown {
    pub(crate) fn signal(self) -> Signal {
        match self {
            Self::Fast => Signal::SIGINT,
            Self::Immediate => Signal::SIGQUIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_of_the_caller_wins_over_ours() {
        let mut settings = Settings::durable("anywhere");
        settings.extra.push(("jit".to_owned(), "on".to_owned()));
        let last = settings.parameters().into_iter().rfind(|(name, _)| name == "jit");
        assert_eq!(last, Some(("jit".to_owned(), "on".to_owned())));
    }

    #[test]
    fn a_durable_server_forces_commits_to_the_disk() {
        let parameters = Settings::durable("anywhere").parameters();
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            assert!(parameters.contains(&(name.to_owned(), "on".to_owned())), "{name}");
        }
    }
}
