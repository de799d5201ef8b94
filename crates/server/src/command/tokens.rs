//! `stationmaster tokens`: who may come in by HTTP. Works on the database too, so the first token can be made before any server
//! lets anybody in.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use futures::TryStreamExt as _;
use futures::future::ready;
use jiff::Timestamp;
use stationmaster_client::wire::{NewToken, Role, Token};
use stationmaster_client::{Client, Error};
use uuid::Uuid;

use super::Context;
use super::arguments::{duration, id, text};
use crate::failure::{Kind, Refusal};
use crate::output::{age, cell, maybe, printable, status, table, word};

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a token; its secret is printed once, and never again
    Create(CreateArgs),
    /// The tokens there are, without their secrets
    List,
    /// Let a token open no door any more; every server knows within five seconds
    Revoke {
        /// The token: its id or its name
        token: String,
    },
}

/// A new token.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What people call it
    #[arg(value_parser = text)]
    name: String,
    /// What it may do
    #[arg(long, value_enum)]
    role: RoleArg,
    /// Only in this workspace; may be repeated, and left out for all
    #[arg(long = "workspace", value_name = "ID", value_parser = id::<Uuid>)]
    workspaces: Vec<Uuid>,
    /// How long it opens the door, as in 90d; for ever when left out
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expires_in: Option<std::time::Duration>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleArg {
    Viewer,
    Operator,
    Admin,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::Create(args) => {
            let expires_at = args
                .expires_in
                .map(|time| Timestamp::now().checked_add(time))
                .transpose()?;
            let new = NewToken {
                name: args.name,
                role: match args.role {
                    RoleArg::Viewer => Role::Viewer,
                    RoleArg::Operator => Role::Operator,
                    RoleArg::Admin => Role::Admin,
                },
                workspaces: (!args.workspaces.is_empty()).then_some(args.workspaces),
                expires_at,
            };
            let made = client.make_token(&new).await?;
            context.format.print(&made, |made| made.secret.clone())?;
            context
                .format
                .hint("Keep it now: it is stored nowhere and cannot be shown again.");
            Ok(())
        }
        Command::List => {
            let tokens: Vec<Token> = client.all_tokens().try_collect().await?;
            context.format.print(&tokens[..], |tokens| {
                let header = [
                    "ID",
                    "NAME",
                    "STATE",
                    "ROLE",
                    "WORKSPACES",
                    "ENDS WITH",
                    "AGE",
                    "EXPIRES",
                    "LAST USED",
                ];
                table(&header, tokens.iter().map(row))
            })
        }
        Command::Revoke { token } => {
            let revoked = revoke(&token, &client).await?;
            context.format.print(&revoked, |revoked| {
                format!("Token {} opens no door any more.", printable(&revoked.name))
            })
        }
    }
}

/// By its id, or by the name of one that is not revoked.
async fn revoke(which: &str, client: &Client) -> Result<Token> {
    let found = if let Ok(id) = which.parse() {
        client.token(id).await?
    } else {
        let named = |token: &Token| ready(token.name == which && token.revoked_at.is_none());
        let mut found = std::pin::pin!(client.all_tokens().try_filter(named));
        let missing = || {
            let advice = "See which there are: stationmaster tokens list";
            Refusal::new(Kind::NotFound, format!("there is no token {which}"), advice)
        };
        found.try_next().await?.ok_or_else(missing)?
    };
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

fn row(token: &Token) -> Vec<comfy_table::Cell> {
    let state = match token {
        Token { active: true, .. } => "up",
        Token {
            revoked_at: Some(_), ..
        } => "revoked",
        _ => "expired",
    };
    vec![
        cell(token.id),
        cell(&token.name),
        status(state),
        cell(word(&token.role)),
        cell(
            token
                .workspaces
                .as_ref()
                .map_or("all".to_owned(), |ids| ids.len().to_string()),
        ),
        cell(format!("…{}", token.hint)),
        cell(age(token.created_at)),
        maybe(token.expires_at.map(age)),
        maybe(token.last_used_at.map(age)),
    ]
}
