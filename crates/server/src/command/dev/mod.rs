//! `stationmaster dev`: everything on one machine, with nothing to configure. A private PostgreSQL, the embedded engine,
//! and a small live example.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use sqlx::{Connection as _, PgConnection};
use stationmaster_core::alarms::keys;
use stationmaster_core::db::Database;
use stationmaster_core::events;
use stationmaster_core::wake::signature::Secret;
use stationmaster_core::wake::targets::Recipient;
use stationmaster_postgres::{Binaries, Server, Settings, reachable};
use tokio::net::TcpListener;

use super::Context;
use crate::config::{Config, Log, user_data_folder};
use crate::failure::{Kind, Refusal};
use crate::{telemetry, wiring};

mod example;
mod receiver;

const DATABASE: &str = "stationmaster";

/// How `dev` is wanted.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Keep the data in this folder (default: one of the user's, which is named at start)
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Start without the example
    #[arg(long)]
    no_example: bool,
    /// Log everything that happens instead of a summary
    #[arg(long)]
    verbose: bool,
}

pub(crate) async fn run(args: &DevArgs, context: &Context) -> Result<()> {
    let mut config = context.settings()?.config;
    let level = if args.verbose {
        config.log.level.clone()
    } else {
        "warn".to_owned()
    };
    let log = Log {
        format: config.log.format,
        level,
        repeat_after: config.log.repeat_after,
    };
    let telemetry = telemetry::start(&log, &config.traces)?;
    let folder = args
        .data_dir
        .clone()
        .or_else(|| config.dev.data_dir.clone())
        .unwrap_or_else(default_folder);
    println!("Stationmaster, for development");
    println!(
        "  data         {}   (start afresh: delete this folder)",
        folder.display()
    );
    let server = start_postgres(&config, &folder).await?;
    let url = server.url(DATABASE);
    make_database(&server).await?;
    println!("  database     {url}");
    config.database_url = Some(url.clone());
    // Nothing to configure: on this machine nobody is asked for a token.
    config.http.open |= config.listen.ip().is_loopback();
    if config.listen.ip().is_loopback() {
        allow_this_machine(&mut config)?;
    }
    let receiver = receive_wakes(&mut config).await?;
    let listener = listen(&config).await?;
    let database = Database::new(&url, config.database_pool)?.with_requests(config.http.database_pool);
    let config = Arc::new(config);
    let running = wiring::start(&config, database, listener)
        .await
        .map_err(|error| afresh(error, &folder))?;
    // Whoever tries it out wants to see it live.
    events::tell_steps(&running.database, true).await?;
    println!("  dashboard    http://{}", running.address);
    println!("  api          http://{}/docs", running.address);
    if config.http.open {
        println!("  tokens       none are asked for: whoever reaches this address may do everything");
    }
    if let Some(url) = receiver {
        println!("  wakes        {url}/internal/wake   (a receiver of our own, which prints them)");
    }
    println!("  stop         Ctrl-C; the data stays\n");
    let example = !args.no_example && config.dev.example;
    println!("{}\n", tour(&format!("http://{}", running.address), example));
    let example = example.then(|| example::start(running.database.clone()));
    let patience = config.shutdown_timeout;
    let result = running.until_told_to_stop(patience, None).await;
    telemetry.finish().await;
    if let Some(example) = example {
        example.abort();
    }
    println!("\nStopped. The data stays in {}", folder.display());
    tokio::task::spawn_blocking(move || server.stop()).await?;
    result
}

/// Whoever tries it out calls programs of this machine. What somebody has set holds.
fn allow_this_machine(config: &mut Config) -> Result<()> {
    for allowed in [&mut config.alarms.allow_targets, &mut config.node_targets] {
        if allowed.is_empty() {
            for network in ["localhost", "127.0.0.0/8", "::1/128"] {
                allowed.push(network.parse().map_err(anyhow::Error::msg)?);
            }
        }
    }
    Ok(())
}

/// What is in the folder was made by this command, so the way out of tables that cannot be used is a new one.
fn afresh(error: anyhow::Error, folder: &Path) -> anyhow::Error {
    use stationmaster_core::db::Error;
    let folder = folder.display();
    match error.downcast_ref::<Error>() {
        Some(Error::BeforeRelease | Error::Torn { .. }) => Refusal::new(
            Kind::Unavailable,
            format!("the data in {folder} is that of another state of this program, and cannot be carried over"),
            format!("It holds only what `dev` has made. Delete it (rm -r {folder}), or name another folder by --data-dir"),
        )
        .into(),
        _ => error,
    }
}

/// What to type in another terminal.
fn tour(url: &str, example: bool) -> String {
    let path = std::env::current_exe().ok();
    let folder = path.as_deref().and_then(Path::parent);
    let folder = folder.filter(|folder| !["/usr/bin", "/usr/local/bin"].map(Path::new).contains(folder));
    let path = folder.map_or_else(String::new, |folder| {
        format!(" PATH=\"{}:$PATH\"", folder.display())
    });
    let commands = if example { example::TOUR } else { &FIRST };
    let mut lines = vec![
        "A tour, in another terminal:".to_owned(),
        String::new(),
        format!("  export STATIONMASTER_URL={url}{path}"),
    ];
    lines.extend(
        commands
            .iter()
            .map(|(command, what)| format!("  {command:<52}# {what}")),
    );
    lines.join("\n")
}

/// Where there is nothing to look at yet.
const FIRST: [(&str, &str); 2] = [
    (
        "stationmaster workspaces create shop --plan PRO",
        "somebody to work for",
    ),
    ("stationmaster doctor", "is everything well?"),
];

/// Wakes go to a receiver of our own, unless somebody configured another.
async fn receive_wakes(config: &mut Config) -> Result<Option<String>> {
    if config.alarms.router_url.is_some() || !config.alarms_enabled {
        return Ok(None);
    }
    let secret = config.alarms.signing_secret.get_or_insert_with(Secret::random);
    let secret = keys::first(secret, &Recipient::router());
    let url = receiver::start(&secret).await?;
    config.alarms.router_url = Some(url.parse()?);
    Ok(Some(url))
}

/// The user's own data folder; where the database's account could not live there, one beside the temporary files.
fn default_folder() -> PathBuf {
    let wanted = user_data_folder().map(|data| data.join("stationmaster/dev"));
    if let Some(folder) = wanted.filter(|folder| reachable(folder).is_ok()) {
        return folder;
    }
    let shared = Path::new("/var/tmp");
    let parent = if shared.is_dir() {
        shared.to_owned()
    } else {
        std::env::temp_dir()
    };
    parent.join("stationmaster-dev")
}

async fn start_postgres(config: &Config, folder: &Path) -> Result<Server> {
    let (hint, folder) = (config.dev.postgres_bin.clone(), folder.to_owned());
    let server = tokio::task::spawn_blocking(move || -> Result<Server> {
        let binaries = Binaries::find_for(hint.as_deref(), &folder)?;
        println!(
            "  postgresql   {} from {}",
            binaries.version,
            binaries.bin_dir.display()
        );
        Ok(Server::start(&binaries, &Settings::durable(folder))?)
    });
    server.await?
}

async fn make_database(server: &Server) -> Result<()> {
    let mut connection = PgConnection::connect(&server.url("postgres")).await?;
    let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(DATABASE)
        .fetch_one(&mut connection)
        .await?;
    if !exists {
        sqlx::query("create database stationmaster")
            .execute(&mut connection)
            .await?;
    }
    connection.close().await?;
    Ok(())
}

/// The configured address, or any free port when somebody else has it: `dev` should simply start.
async fn listen(config: &Config) -> Result<TcpListener> {
    match TcpListener::bind(config.listen).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            println!("  note         {} is in use; taking a free port", config.listen);
            Ok(TcpListener::bind((config.listen.ip(), 0)).await?)
        }
        Err(error) => Err(error).with_context(|| format!("cannot listen on {}", config.listen)),
    }
}
