//! Who may come in: tokens, made once, kept as a hash, revoked within seconds.
//!
//! The secret is shown to whoever makes the token and to nobody afterwards. What a token may do is its role; where, its
//! scope. This module knows nothing of HTTP: it answers who holds a secret, and that is all.

use jiff::Timestamp;
use uuid::Uuid;

use crate::columns::{At, MaybeAt};
use crate::db::{self, Database, statement, within};
use crate::id::{TokenId, WorkspaceId};
use crate::session::Scope;
use crate::words::words;

pub mod answers;
pub mod secret;

pub use secret::Secret;

words! {
    /// What a token may do; each role includes the ones before it.
    pub enum Role {
        /// Look.
        Viewer = "viewer",
        /// Enqueue, cancel, retry, complete, pause.
        Operator = "operator",
        /// Change the catalogue, make and revoke tokens, read the audit.
        Admin = "admin",
    }
}

/// A token, without its secret.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// What people call it.
    pub name: String,
    /// The last characters of its secret, to tell tokens apart.
    pub hint: String,
    /// What it may do.
    pub role: Role,
    /// Where.
    #[sqlx(rename = "workspaces", try_from = "Option<Vec<WorkspaceId>>")]
    pub scope: Scope,
    /// When it was made.
    #[sqlx(try_from = "At")]
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// When it ends; none: never.
    #[sqlx(try_from = "MaybeAt")]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[sqlx(try_from = "MaybeAt")]
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[sqlx(try_from = "MaybeAt")]
    pub last_used_at: Option<Timestamp>,
    /// Does it open the door now?
    pub active: bool,
}

/// A token to make.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What people call it; unique among those that are not revoked.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Where.
    pub scope: Scope,
    /// When it ends; none: never.
    pub expires_at: Option<Timestamp>,
}

/// Why a token was not made or revoked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is taken.
    #[error("there is a token named {0:?} already")]
    NameTaken(String),
    /// No such token.
    #[error("there is no token {0}")]
    NotFound(String),
    /// A value is out of its range.
    #[error("{0}")]
    Invalid(String),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// Makes a token. The secret is in the answer, and nowhere else.
pub async fn create(database: &Database, new: &NewToken, by: &str) -> Result<(Token, Secret), Error> {
    let length = new.name.chars().count();
    if new.name.trim().is_empty() || length > 100 || new.name.contains(char::is_control) {
        return Err(Error::Invalid(
            "a token's name has 1 to 100 characters, none of them a control character".to_owned(),
        ));
    }
    if let Scope::Only(workspaces) = &new.scope
        && !(1..=1000).contains(&workspaces.len())
    {
        return Err(Error::Invalid(
            "a token is for all workspaces, or for 1 to 1000 of them".to_owned(),
        ));
    }
    let secret = Secret::generate();
    let mut transaction = acting(database, by).await?;
    let query = sqlx::query_as(statement!("access/create"))
        .bind(&new.name)
        .bind(secret.hash().to_vec())
        .bind(secret.hint())
        .bind(new.role)
        .bind(new.scope.limited())
        .bind(new.expires_at.map(jiff_sqlx::Timestamp::from))
        .bind(by);
    match within(query.fetch_optional(&mut *transaction)).await {
        Ok(None) => Err(Error::Invalid("the token would have expired already".to_owned())),
        Ok(Some(token)) => {
            within(transaction.commit()).await?;
            Ok((token, secret))
        }
        Err(error) if error.code().as_deref() == Some("23505") => Err(Error::NameTaken(new.name.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Tokens in the order of their ids, after `after`.
pub async fn list(database: &Database, after: Option<TokenId>, limit: i64) -> Result<Vec<Token>, db::Error> {
    let query = sqlx::query_as(statement!("access/list"))
        .bind(after.map_or(Uuid::nil(), |id| id.0))
        .bind(limit)
        .bind(None::<Uuid>);
    within(query.fetch_all(database.pool())).await
}

/// One token.
pub async fn token(database: &Database, id: TokenId) -> Result<Option<Token>, db::Error> {
    let query = sqlx::query_as(statement!("access/list"))
        .bind(Uuid::nil())
        .bind(1_i64)
        .bind(id);
    within(query.fetch_optional(database.pool())).await
}

/// Revokes a token by its id or by its name; every server forgets it within seconds. Revoking it again changes nothing.
pub async fn revoke(database: &Database, which: &str, by: &str) -> Result<Token, Error> {
    let mut transaction = acting(database, by).await?;
    let query = sqlx::query_as(statement!("access/revoke"))
        .bind(which.parse::<Uuid>().ok())
        .bind(which)
        .bind(by);
    let token = within(query.fetch_optional(&mut *transaction)).await?;
    within(transaction.commit()).await?;
    token.ok_or_else(|| Error::NotFound(which.to_owned()))
}

/// Who holds this secret; also one that was revoked or has expired, so that the refusal can say so.
pub async fn find(database: &Database, secret: &Secret) -> Result<Option<Token>, db::Error> {
    let query = sqlx::query_as(statement!("access/find")).bind(secret.hash().to_vec());
    within(query.fetch_optional(database.pool())).await
}

/// Notes that a token was used; at most once a minute, whoever asks.
pub async fn touch(database: &Database, id: TokenId) -> Result<(), db::Error> {
    within(
        sqlx::query(statement!("access/touch"))
            .bind(id)
            .execute(database.pool()),
    )
    .await?;
    Ok(())
}

/// Is there a token that opens the door?
pub async fn any_active(database: &Database) -> Result<bool, db::Error> {
    within(sqlx::query_scalar(statement!("access/any_active")).fetch_one(database.pool())).await
}

/// The tokens are out of the reach of the role that requests run as, so this runs as ourselves, under the caller's name.
async fn acting(
    database: &Database,
    by: &str,
) -> Result<sqlx::Transaction<'static, sqlx::Postgres>, db::Error> {
    let mut transaction = within(database.pool().begin()).await?;
    let query = "select set_config('stationmaster.actor', $1, true)";
    within(sqlx::query(query).bind(by).execute(&mut *transaction)).await?;
    Ok(transaction)
}
