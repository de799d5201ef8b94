//! Servers, tokens, the audit, locks.

use anyhow::Result;
use futures::TryStreamExt as _;
use stationmaster_client::{Error, wire};
use stationmaster_core::access::{self, NewToken, Role};
use stationmaster_core::audit::{self, Filter};
use stationmaster_core::id::WorkspaceId;
use stationmaster_core::locks::Released;
use stationmaster_core::presence;
use stationmaster_core::session::Scope;
use uuid::Uuid;

use super::super::Context;
use super::{Backend, Listed, cut, place_by, rows, size, told};
use crate::failure::{Kind, Refusal};
use crate::http::shapes;

/// Tokens that are listed at most.
const TOKENS: usize = 10_000;

/// What came of freeing a lock by hand.
pub(in crate::command) enum Freed {
    /// It is free.
    Now,
    /// It had become free.
    Before,
    /// Somebody else holds it by now.
    HeldByAnother(String),
}

impl Backend {
    pub(in crate::command) async fn servers(&self) -> Result<Vec<wire::Server>> {
        match self {
            Self::Database(direct) => {
                let servers = presence::list(&direct.database).await?;
                Ok(servers.into_iter().map(shapes::server).collect())
            }
            Self::Api(client) => Ok(client.servers().await?),
        }
    }

    pub(in crate::command) async fn tokens(&self) -> Result<Vec<wire::Token>> {
        match self {
            Self::Database(direct) => {
                let tokens = access::list(&direct.database, None, rows(TOKENS)).await?;
                Ok(tokens.into_iter().map(shapes::token).collect())
            }
            Self::Api(client) => Ok(client.all_tokens().try_collect().await?),
        }
    }

    pub(in crate::command) async fn make_token(&self, new: wire::NewToken) -> Result<wire::TokenMade> {
        match self {
            Self::Database(direct) => {
                let new = NewToken {
                    name: new.name,
                    role: match new.role {
                        wire::Role::Viewer => Role::Viewer,
                        wire::Role::Operator => Role::Operator,
                        wire::Role::Admin => Role::Admin,
                    },
                    scope: new.workspaces.map_or(Scope::All, |ids| {
                        Scope::Only(ids.into_iter().map(WorkspaceId).collect())
                    }),
                    expires_at: new.expires_at,
                };
                let (token, secret) = access::create(&direct.database, &new, &Context::actor()).await?;
                Ok(wire::TokenMade {
                    token: shapes::token(token),
                    secret: secret.expose().to_owned(),
                })
            }
            Self::Api(client) => Ok(client.make_token(&new).await?),
        }
    }

    /// By its id, or by the name of one that is not revoked.
    pub(in crate::command) async fn revoke_token(&self, which: &str) -> Result<wire::Token> {
        match self {
            Self::Database(direct) => {
                let revoked = access::revoke(&direct.database, which, &Context::actor()).await?;
                Ok(shapes::token(revoked))
            }
            Self::Api(client) => {
                let found = match which.parse::<Uuid>() {
                    Ok(id) => Some(client.token(id).await?),
                    Err(_) => self
                        .tokens()
                        .await?
                        .into_iter()
                        .find(|token| token.name == which && token.revoked_at.is_none()),
                };
                let Some(found) = found else {
                    return Err(access::Error::NotFound(which.to_owned()).into());
                };
                client.revoke_token(found.id).await?;
                match client.token(found.id).await {
                    // A token that revoked itself is told no more.
                    Err(Error::Unauthenticated(_)) => Ok(wire::Token {
                        active: false,
                        ..found
                    }),
                    other => Ok(other?),
                }
            }
        }
    }

    /// Lines that match; the limit and the cursor of the query are not looked at.
    pub(in crate::command) async fn audit(
        &self,
        query: &wire::AuditQuery,
        limit: usize,
        before: Option<&str>,
    ) -> Result<Listed<wire::AuditEntry>> {
        Listed::read(limit, before, async |limit, before| match self {
            Self::Database(direct) => {
                let read = |text: &str| text.parse().map_err(|_| "not a place in the audit".to_owned());
                let before: Option<i64> = place_by(before, read)?;
                let filter = Filter {
                    workspace: query.workspace_id.map(WorkspaceId),
                    actor: query.actor.clone(),
                    action: query.action.clone(),
                    subject: query.subject.clone(),
                    before,
                    limit: rows(limit) + 1,
                };
                let found = audit::list(&direct.database, &filter).await?;
                let found = found.into_iter().map(shapes::entry).collect();
                Ok(cut(found, limit, |entry: &wire::AuditEntry| entry.id.to_string()))
            }
            Self::Api(client) => {
                let query = wire::AuditQuery {
                    limit: size(limit),
                    cursor: before,
                    ..query.clone()
                };
                Ok(told(client.audit(&query).await?))
            }
        })
        .await
    }

    pub(in crate::command) async fn locks(&self) -> Result<Vec<wire::Lock>> {
        match self {
            Self::Database(direct) => {
                let locks = direct.locks.list().await?;
                Ok(locks.into_iter().map(shapes::lock).collect())
            }
            Self::Api(client) => Ok(client.locks().await?),
        }
    }

    pub(in crate::command) async fn lock(&self, name: &str) -> Result<wire::Lock> {
        let unknown = || {
            let advice = "See which there are: stationmaster locks list";
            Refusal::new(Kind::NotFound, format!("there is no lock {name:?}"), advice)
        };
        match self {
            Self::Database(direct) => {
                let found = direct.locks.find(name).await?;
                Ok(shapes::lock(found.ok_or_else(unknown)?))
            }
            Self::Api(client) => match client.lock(name).await {
                Err(Error::NotFound(_)) => Err(unknown().into()),
                other => Ok(other?),
            },
        }
    }

    /// Frees a lock by hand, provided that it is still held by the one who was seen.
    pub(in crate::command) async fn free_lock(&self, lock: &wire::Lock) -> Result<Freed> {
        match self {
            Self::Database(direct) => {
                let released = direct
                    .locks
                    .release(&lock.name, &lock.by, &Context::actor())
                    .await?;
                Ok(match released {
                    Released::Free => Freed::Now,
                    Released::WasFree | Released::Unknown => Freed::Before,
                    Released::HeldByAnother(now) => Freed::HeldByAnother(now),
                })
            }
            Self::Api(client) => match client.release_lock(&lock.name, &lock.by).await {
                Ok(wire::UnlockAnswer { released: true, .. }) => Ok(Freed::Now),
                Ok(_) => Ok(Freed::Before),
                Err(Error::Conflict(_)) => Ok(Freed::HeldByAnother(client.lock(&lock.name).await?.by)),
                Err(error) => Err(error.into()),
            },
        }
    }
}
