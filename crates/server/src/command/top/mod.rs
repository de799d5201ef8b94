//! `stationmaster top`: a live view of everything in a terminal, with keys to look closer and to act.
//!
//! ```text
//! client --look--> [Picture] --+
//! keys ------------------------+--> App (what is chosen, what is asked) --draw--> terminal
//! ```
//!
//! Everything that is seen or done goes through the client, so it works through a server as on a database. What is done is asked for first.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{FailureQuery, OverviewQuery};
use tokio::sync::mpsc;

use super::Context;
use super::arguments::duration;
use super::watch::Pulse;
use crate::failure::Refusal;

mod act;
mod app;
mod view;

use act::{Act, closer};
use app::{App, Picture, Wish};

/// Groups of failures that are shown.
const GROUPS: u32 = 100;
/// How wide and high one picture is where there is no terminal.
const PAPER: (u16, u16) = (120, 40);

/// How to look.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Look again after this long at the latest
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    every: Duration,
    /// Look once, print what is seen, and end
    #[arg(long)]
    once: bool,
}

pub(crate) async fn run(args: TopArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    if args.once || context.format == crate::output::Format::Json {
        return once(&client, context).await;
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let advice = "Say --once for one picture, or --json for its numbers";
        return Err(Refusal::usage(
            "this is a live view, and there is no terminal to show it in",
            advice,
        )
        .into());
    }
    let mut terminal = ratatui::try_init()?;
    let ended = live(&mut terminal, &client, args.every).await;
    ratatui::restore();
    ended
}

async fn once(client: &Client, context: &Context) -> Result<()> {
    let picture = look(client).await?;
    let value = json!({ "overview": picture.overview, "failures": picture.failures });
    context.print(&value, |_| {
        let app = App::new(picture.clone());
        let Ok(mut terminal) = Terminal::new(TestBackend::new(PAPER.0, PAPER.1));
        let Ok(_) = terminal.draw(|frame| view::draw(frame, &app, Timestamp::now()));
        let buffer = terminal.backend().buffer();
        let cells = buffer.content().chunks(usize::from(PAPER.0));
        let lines = cells.map(|line| line.iter().map(ratatui::buffer::Cell::symbol).collect::<String>());
        lines
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
            .trim_end()
            .to_owned()
    })
}

/// What there is to see now.
async fn look(client: &Client) -> Result<Picture> {
    let failures = FailureQuery {
        limit: Some(GROUPS),
        ..FailureQuery::default()
    };
    Ok(Picture {
        overview: client.overview(&OverviewQuery::default()).await?,
        failures: client.failures(&failures).await?.items,
        seen_at: Timestamp::now(),
    })
}

async fn live(terminal: &mut ratatui::DefaultTerminal, client: &Client, every: Duration) -> Result<()> {
    let mut keys = keys();
    let mut pulse = Pulse::new(client, None, every);
    let mut app = App::new(look(client).await?);
    loop {
        terminal.draw(|frame| view::draw(frame, &app, Timestamp::now()))?;
        let wish = tokio::select! {
            key = keys.recv() => match key {
                Some(Event::Key(key)) if key.kind == KeyEventKind::Press => app.press(key),
                Some(_) => Wish::Nothing,
                None => Wish::Leave,
            },
            () = pulse.next() => Wish::Look,
        };
        match wish {
            Wish::Nothing => {}
            Wish::Leave => return Ok(()),
            Wish::Look if app.frozen => {}
            Wish::Look => match look(client).await {
                Ok(picture) => app.show(picture),
                // Whoever watches wants to see it come back; the last picture stays.
                Err(error) => app.say(format!(
                    "{error:#}; this is from {} ago",
                    crate::output::age(app.picture.seen_at)
                )),
            },
            Wish::Closer(thing) => match closer(client, &thing, view::room(terminal.size()?.width)).await {
                Ok(text) => app.open(thing, text),
                Err(error) => app.say(format!("{error:#}")),
            },
            Wish::Do(act) => {
                let said = act.carry_out(client).await;
                app.say(said.unwrap_or_else(|error| format!("{error:#}")));
                if let Ok(picture) = look(client).await {
                    app.show(picture);
                }
            }
        }
    }
}

/// Keys come from a thread of their own: a terminal is read by waiting.
fn keys() -> mpsc::UnboundedReceiver<Event> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    let _ = io::stdout().flush();
    receiver
}
