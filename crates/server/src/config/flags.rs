//! The flags by which settings are given. They hold words only: what the words mean is told by the table, so a flag and an
//! environment variable are read, refused and shown alike.

use std::path::PathBuf;

use clap::Args;

/// Flags that every command knows.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Flags {
    /// Read settings from this TOML file (also: the environment variable `STATIONMASTER_CONFIG`)
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,

    /// Give any setting by its key, such as `--set executions.batch_size=100`; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// The setting `database_url`; a password is better kept in the environment or in a file
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,

    /// The setting `engine`: embedded or temporal
    #[arg(long, global = true)]
    pub(crate) engine: Option<String>,

    /// The setting `listen`
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,

    /// The setting `temporal.address`
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) temporal_address: Option<String>,

    /// The setting `temporal.namespace`
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) temporal_namespace: Option<String>,

    /// The setting `log.level`
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log_level: Option<String>,
}

impl Flags {
    /// The flags that stand for one setting each, when they were given: name of the flag, key, value.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        let flags = [
            ("--database-url", "database_url", &self.database_url),
            ("--engine", "engine", &self.engine),
            ("--listen", "listen", &self.listen),
            ("--temporal-address", "temporal.address", &self.temporal_address),
            (
                "--temporal-namespace",
                "temporal.namespace",
                &self.temporal_namespace,
            ),
            ("--log-level", "log.level", &self.log_level),
        ];
        flags
            .into_iter()
            .filter_map(|(flag, key, value)| Some((flag, key, value.as_deref()?)))
    }
}
