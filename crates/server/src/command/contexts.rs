//! `stationmaster contexts`: names for servers, so that neither an address nor a token has to be typed. Tokens are never printed.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use stationmaster_client::Client;

use super::Context;
use super::arguments::{Caution, read, text};
use super::pages::Sorting;
use crate::config::{Contexts, Stored, no_context, token_of_the_environment};
use crate::failure::Refusal;
use crate::output::{Column, Described, cell, column, maybe, printable};

/// What to do with contexts.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Keep the server at --url under a name; the first one is used from then on
    Add(AddArgs),
    /// The contexts there are
    List(Sorting),
    /// Work through this server when nothing else is said
    Use {
        /// The context
        name: String,
    },
    /// Forget a context and its token
    #[command(mut_arg("dry_run", |flag| flag.help("Only say what would be forgotten")))]
    Remove {
        /// The context
        name: String,
        #[command(flatten)]
        caution: Caution,
    },
}

/// A server to keep; its address is `--url`, its authority `--ca-file`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What to call it
    #[arg(value_parser = text)]
    name: String,
    /// The file that holds the token, - for the standard input; `STATIONMASTER_TOKEN` when left out
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
}

/// A context as it is shown.
#[derive(Serialize)]
struct Shown {
    name: String,
    url: String,
    /// Is there a token?
    token: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_file: Option<PathBuf>,
    /// Is it used when nothing else is said?
    current: bool,
}

impl Described for Shown {
    const COLUMNS: &'static [Column<Self>] = &[
        column("NAME", |shown| cell(&shown.name)),
        column("URL", |shown| cell(&shown.url)),
        column("TOKEN", |shown| maybe(shown.token.then_some("yes"))),
        column("CURRENT", |shown| maybe(shown.current.then_some("yes"))),
    ];
}

pub(crate) fn run(command: Command, context: &Context) -> Result<()> {
    let mut contexts = Contexts::load()?;
    match command {
        Command::Add(args) => add(&args, contexts, context),
        Command::List(sorting) => {
            let names: Vec<String> = contexts.contexts.keys().cloned().collect();
            let shown: Vec<Shown> = names.iter().map(|name| shown(&contexts, name)).collect();
            context.show_all(shown, &sorting)
        }
        Command::Use { name } => {
            known(&contexts, &name)?;
            contexts.current = Some(name.clone());
            contexts.save()?;
            context.print(&shown(&contexts, &name), |shown| {
                let called = format!("{} ({})", printable(&shown.name), shown.url);
                match context.before_contexts() {
                    None => format!("Commands work through {called} from now on."),
                    Some(first) => format!(
                        "{called} is the context in use, but {first} is set and comes first: take that away, or give --context {}.",
                        printable(&shown.name)
                    ),
                }
            })
        }
        Command::Remove { name, caution } => {
            known(&contexts, &name)?;
            let before = shown(&contexts, &name);
            let what = format!("{} ({}) and its token", printable(&name), before.url);
            if !caution.agreed(&format!("Forget {what}? The token is kept nowhere else by us."))? {
                return context.say(&before, format!("Would forget {what}."));
            }
            contexts.contexts.remove(&name);
            if contexts.current.as_ref() == Some(&name) {
                contexts.current = None;
            }
            contexts.save()?;
            context.print(&before, |shown| {
                format!("Forgot {} and its token.", printable(&shown.name))
            })
        }
    }
}

fn add(args: &AddArgs, mut contexts: Contexts, context: &Context) -> Result<()> {
    let token = match args.token_file.as_deref() {
        Some(path) => Some(read(path)?.trim().to_owned()).filter(|token| !token.is_empty()),
        None => token_of_the_environment(),
    };
    let mut client = Client::builder();
    if let Some(token) = &token {
        client = client.token(token);
    }
    // Whatever cannot be an address or a token is refused now, not when it is needed.
    let Some(url) = context.target.url.clone() else {
        let message = "where the server is was not said";
        return Err(Refusal::usage(
            message,
            "Give --url, such as --url https://stationmaster.example.org",
        )
        .into());
    };
    let client = client.build(&url)?;
    if !client.address().username().is_empty() || client.address().password().is_some() {
        let message = "an address holds no user and no password";
        return Err(Refusal::usage(message, "Give the token by --token-file or STATIONMASTER_TOKEN").into());
    }
    let before = contexts.contexts.get(&args.name).cloned();
    // A token is kept for its own server, and for no other.
    let kept = before.as_ref().filter(|before| before.url == url);
    let stored = Stored {
        token: token.or_else(|| kept.and_then(|before| before.token.clone())),
        ca_file: context.target.ca_file.clone(),
        url,
    };
    let instead = before.filter(|before| *before != stored).map(|before| {
        let forgotten = before.token.is_some() && before.token != stored.token;
        let token = if forgotten {
            ", whose token is forgotten"
        } else {
            ""
        };
        format!(", in place of {}{token}", before.url)
    });
    let instead = instead.unwrap_or_default();
    contexts.contexts.insert(args.name.clone(), stored);
    contexts.current.get_or_insert_with(|| args.name.clone());
    contexts.save()?;
    context.print(&shown(&contexts, &args.name), |shown| {
        let token = if shown.token {
            "with its token"
        } else {
            "without a token"
        };
        let used = match (shown.current, context.before_contexts()) {
            (false, _) => String::new(),
            (true, None) => "; it is the one in use".to_owned(),
            (true, Some(first)) => {
                format!("; it is the one in use, but {first} is set and comes first")
            }
        };
        let name = printable(&shown.name);
        format!("Kept {name} ({}) {token}{instead}{used}.", shown.url)
    })
}

fn shown(contexts: &Contexts, name: &str) -> Shown {
    let stored = contexts.contexts.get(name);
    Shown {
        name: name.to_owned(),
        url: stored.map(|stored| stored.url.clone()).unwrap_or_default(),
        token: stored.is_some_and(|stored| stored.token.is_some()),
        ca_file: stored.and_then(|stored| stored.ca_file.clone()),
        current: contexts.current.as_deref() == Some(name),
    }
}

fn known(contexts: &Contexts, name: &str) -> Result<()> {
    if contexts.contexts.contains_key(name) {
        return Ok(());
    }
    Err(no_context(name, contexts).into())
}
