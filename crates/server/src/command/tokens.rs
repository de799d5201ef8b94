//! `stationmaster tokens`: who may come in by HTTP. Works on the database too, so the first token can be made before any server
//! lets anybody in.

use anyhow::Result;
use clap::{Args, Subcommand};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use stationmaster_client::wire::{NewToken, Noun, Reference, Role, Token};
use stationmaster_client::{Client, Error};

use super::Context;
use super::arguments::{Caution, duration, text, word_of};
use super::names::{self, reference};
use super::pages::Sorting;
use crate::output::{
    Column, Described, cell, column, id, in_details, minor, printable, status, time, told, word,
};

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a token; its secret is printed once, and never again
    Create(CreateArgs),
    /// The tokens there are, without their secrets
    List(Sorting),
    /// One token, without its secret
    Show {
        /// The token
        #[arg(value_parser = reference)]
        token: Reference,
    },
    /// Let a token open no door any more; every server knows within five seconds
    #[command(mut_arg("dry_run", |flag| flag.help("Only say what would be revoked")))]
    Revoke {
        /// The token
        #[arg(value_parser = reference)]
        token: Reference,
        #[command(flatten)]
        caution: Caution,
    },
}

/// A new token.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What people call it
    #[arg(value_parser = text)]
    name: String,
    /// What it may do
    #[arg(long, value_parser = word_of::<Role>(["viewer", "operator", "admin"]), ignore_case = true)]
    role: Role,
    /// Only in this workspace; may be repeated, and left out for all
    #[arg(long = "workspace", value_name = "NAME", value_parser = reference)]
    workspaces: Vec<Reference>,
    /// How long it opens the door, as in 90d; for ever when left out
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expires_in: Option<std::time::Duration>,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::Create(args) => {
            let expires_at = args
                .expires_in
                .map(|time| Timestamp::now().checked_add(time))
                .transpose()?;
            let mut workspaces = Vec::with_capacity(args.workspaces.len());
            for which in &args.workspaces {
                workspaces.push(names::workspace(&client, which).await?);
            }
            let new = NewToken {
                name: args.name,
                role: args.role,
                workspaces: (!workspaces.is_empty()).then_some(workspaces),
                expires_at,
            };
            let made = client.make_token(&new).await?;
            context.print(&made, |made| made.secret.clone())?;
            context.hint("Keep it now: it is stored nowhere and cannot be shown again.");
            Ok(())
        }
        Command::List(sorting) => {
            let tokens: Vec<Token> = client.all_tokens().try_collect().await?;
            context.show_all(tokens, &sorting)
        }
        Command::Show { token } => context.show(&find(&token, &client).await?),
        Command::Revoke { token, caution } => {
            let found = find(&token, &client).await?;
            let name = printable(&found.name);
            let question =
                format!("Revoke the token {name}? Whoever uses it is refused within five seconds, for good.");
            if !caution.agreed(&question)? {
                let words =
                    format!("Would revoke the token {name}: whoever uses it would be refused, for good.");
                return context.say(&found, words);
            }
            let revoked = revoke(found, &client).await?;
            context.say(&revoked, format!("Token {name} opens no door any more."))
        }
    }
}

async fn find(token: &Reference, client: &Client) -> Result<Token> {
    let id = names::one(client, Noun::Token, None, token).await?;
    Ok(client.token(id).await?)
}

async fn revoke(found: Token, client: &Client) -> Result<Token> {
    client.revoke_token(found.id).await?;
    match client.token(found.id).await {
        // A token that revoked itself is told no more.
        Err(Error::Unauthenticated(_)) => Ok(Token {
            active: false,
            ..found
        }),
        other => Ok(other?),
    }
}

impl Described for Token {
    const COLUMNS: &'static [Column<Self>] = &[
        id("ID", |token| token.id),
        column("NAME", |token| cell(&token.name)),
        column("STATE", |token| status(state(token))),
        column("ROLE", |token| cell(word(&token.role))),
        told("WORKSPACES", |token| Some(workspaces(token))),
        minor(column("ENDS WITH", |token| cell(format!("…{}", token.hint)))),
        time("CREATED", |token| Some(token.created_at)),
        in_details(column("BY", |token| cell(&token.created_by))),
        time("EXPIRES", |token| token.expires_at),
        in_details(time("REVOKED", |token| token.revoked_at)),
        time("LAST USED", |token| token.last_used_at),
    ];
}

/// Where it may be used, by name; what is gone has its id left.
fn workspaces(token: &Token) -> String {
    let Some(ids) = &token.workspaces else {
        return "all".to_owned();
    };
    let names = token.workspace_names.iter().flatten().map(Option::as_ref);
    let names = names.chain(std::iter::repeat(None));
    let called = ids.iter().zip(names);
    let called = called.map(|(id, name)| name.map_or_else(|| id.to_string(), String::clone));
    called.collect::<Vec<_>>().join(", ")
}

fn state(token: &Token) -> &'static str {
    match (token.active, token.revoked_at) {
        (true, _) => "up",
        (false, Some(_)) => "revoked",
        (false, None) => "expired",
    }
}
