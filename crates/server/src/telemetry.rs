//! Where the log goes: to standard error, for people or as JSON. Set up once, by the commands that run for long.

use anyhow::Result;
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Starts the log.
pub(crate) fn start(log: &Log) -> Result<()> {
    let filter = EnvFilter::try_new(&log.level)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = match log.format {
        LogFormat::Pretty => subscriber.compact().try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("the log could not be started: {error}"))
}
