//! `stationmaster serve`: a server on a database of one's own.

use anyhow::{Context as _, Result};
use clap::Args;
use std::sync::Arc;
use tokio::net::TcpListener;

use super::Context;
use crate::failure::Refusal;
use crate::service::Manager;
use crate::{telemetry, wiring};

/// Everything comes from the settings.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {}

pub(crate) async fn run(_args: &ServeArgs, context: &Context) -> Result<()> {
    let config = context.settings()?.config;
    let Some(url) = &config.database_url else {
        return Err(Refusal::usage(
            "no database is configured: the setting database_url is missing",
            "Set STATIONMASTER_DATABASE_URL, or try `stationmaster dev`, which brings a database of its own",
        )
        .into());
    };
    let telemetry = telemetry::start(&config.log, &config.traces)?;
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!(
            "cannot listen on {}: choose another address by the setting listen",
            config.listen
        )
    })?;
    let database = config.database_of_server(url)?;
    let config = Arc::new(config);
    let running = wiring::start(&config, database, listener).await?;
    let scheme = if config.http.tls_cert.is_some() {
        "https"
    } else {
        "http"
    };
    tracing::info!(address = %running.address, server = config.server_name(), "Stationmaster is ready: {scheme}://{}", running.address);
    let manager = Manager::here();
    if let Some(manager) = &manager {
        manager.ready(running.address);
    }
    let result = running.until_told_to_stop(config.shutdown_timeout, manager).await;
    telemetry.finish().await;
    result
}
