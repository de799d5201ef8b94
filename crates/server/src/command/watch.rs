//! Live views: the same table again whenever something may have changed. Events say when; what has none, such as the end of a
//! lease, is seen when it is time to look anyway.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use stationmaster_client::wire::{EventQuery, Page};
use stationmaster_client::{Client, Listening, Paged, Told};
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::Context;
use super::arguments::duration;
use super::pages::{Asked, Part, view};
use crate::failure::is_away;
use crate::output::{Described, Format};

/// Much may happen at once; it is shown together.
const TOGETHER: Duration = Duration::from_millis(200);

/// Whether, and how often, to look again.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Show it again and again, until Ctrl-C, and at once when something is done
    #[arg(long)]
    pub(super) watch: bool,
    /// With --watch: look again after this long at the latest
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    every: Duration,
}

impl WatchArgs {
    /// Shows a list once, or again and again.
    pub(super) async fn list<Q: Paged + Clone, T: Described + Serialize>(
        &self,
        context: &Context,
        client: &Client,
        workspace: Option<Uuid>,
        part: impl Into<Part>,
        asked: &Asked<Q, T>,
        read: impl AsyncFn(&Client, &Q) -> stationmaster_client::Result<Page<T>>,
    ) -> Result<()> {
        let format = context.format;
        if !self.watch {
            return context.list_asked(client, part, asked, read).await;
        }
        let part = part.into();
        let draw = async || view(client, &part, asked, &read, (context, true)).await;
        let mut text = draw().await?.text;
        let mut pulse = Pulse::new(client, workspace, self.every);
        let mut shown = String::new();
        loop {
            if text != shown {
                put(&text, format)?;
                shown = text;
            }
            tokio::select! {
                _ = tokio::signal::ctrl_c() => return Ok(()),
                () = pulse.next() => {}
            }
            text = match draw().await {
                Ok(view) => view.text,
                // Whoever watches wants to see it come back.
                Err(error) if is_away(&error) => {
                    format.hint(&format!("{error:#}; trying again"));
                    shown.clone()
                }
                Err(error) => return Err(error),
            };
        }
    }
}

/// On a terminal in place of the last view; else below it.
fn put(view: &str, format: Format) -> Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::People if out.is_terminal() => write!(out, "\u{1b}[H\u{1b}[2J{view}\n\nCtrl-C ends this.\n")?,
        Format::People => writeln!(out, "{view}\n")?,
        Format::Json => writeln!(out, "{view}")?,
    }
    out.flush()?;
    Ok(())
}

/// Says when to look again.
pub(super) struct Pulse {
    events: Option<Listening>,
    every: Duration,
}

impl Pulse {
    pub(super) fn new(client: &Client, workspace: Option<Uuid>, every: Duration) -> Self {
        let query = EventQuery {
            workspace_id: workspace.map(Into::into),
            family: None,
        };
        Self {
            events: Some(client.listen(query, None)),
            every,
        }
    }

    /// Ends when something happened, or when it is time to look anyway.
    pub(super) async fn next(&mut self) {
        let Some(events) = &mut self.events else {
            return sleep(self.every).await;
        };
        let late = sleep_until(Instant::now() + self.every);
        tokio::pin!(late);
        loop {
            tokio::select! {
                () = &mut late => return,
                told = events.next() => match told {
                    Ok(Told::Hello(_)) => {}
                    Ok(Told::Event(_) | Told::Reset(_)) => return sleep(TOGETHER).await,
                    Err(_) => break,
                },
            }
        }
        // A token that may not listen may still look.
        self.events = None;
        late.await;
    }
}
