//! `stationmaster tokens`: who may come in by HTTP. Works on the database, so the first token can be made before any server
//! lets anybody in.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use stationmaster_core::access::{self, NewToken, Role, Token};
use stationmaster_core::id::WorkspaceId;
use stationmaster_core::session::Scope;

use super::Context;
use super::arguments::{duration, id, text};
use crate::output::{age, cell, maybe, status, table};

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
    #[arg(long = "workspace", value_name = "ID", value_parser = id::<WorkspaceId>)]
    workspaces: Vec<WorkspaceId>,
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
    let database = context.database().await?;
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
                scope: if args.workspaces.is_empty() {
                    Scope::All
                } else {
                    Scope::Only(args.workspaces)
                },
                expires_at,
            };
            let (token, secret) = access::create(&database, &new, &Context::actor()).await?;
            let made = json!({ "token": shown(&token), "secret": secret.expose() });
            context.format.print(&made, |_| secret.expose().to_owned())?;
            context
                .format
                .hint("Keep it now: it is stored nowhere and cannot be shown again.");
            Ok(())
        }
        Command::List => {
            let tokens = access::list(&database, None, 10_000).await?;
            let values: Vec<Value> = tokens.iter().map(shown).collect();
            context.format.print(&values[..], |_| {
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
            let revoked = access::revoke(&database, &token, &Context::actor()).await?;
            context.format.print(&shown(&revoked), |_| {
                format!("Token {} opens no door any more.", revoked.name)
            })
        }
    }
}

fn shown(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "hint": token.hint,
        "role": token.role.as_str(),
        "workspaces": token.scope.limited(),
        "created_at": token.created_at,
        "created_by": token.created_by,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "last_used_at": token.last_used_at,
        "active": token.active,
    })
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
        cell(token.role.as_str()),
        cell(
            token
                .scope
                .limited()
                .map_or("all".to_owned(), |ids| ids.len().to_string()),
        ),
        cell(format!("…{}", token.hint)),
        cell(age(token.created_at)),
        maybe(token.expires_at.map(age)),
        maybe(token.last_used_at.map(age)),
    ]
}
