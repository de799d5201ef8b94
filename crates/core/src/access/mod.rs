//! Who may come in: tokens, made once, kept as a hash, revoked within seconds.
//!
//! The secret is shown to whoever makes the token and to nobody afterwards. What a token may do is its role; where, its
//! scope. This module knows nothing of HTTP: it answers who holds a secret, and that is all.

use uuid::Uuid;

use crate::db::{self, Database, Read as _, Write as _, statement, within};
use crate::id::TokenId;
use crate::names;

pub mod answers;
pub mod secret;

pub use secret::Secret;
pub use stationmaster_wire::{NewToken, Role, Token};

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
    let name = names::name(&new.name).map_err(|error| Error::Invalid(error.to_string()))?;
    if let Some(workspaces) = &new.workspaces
        && !(1..=1000).contains(&workspaces.len())
    {
        return Err(Error::Invalid(
            "a token is for all workspaces, or for 1 to 1000 of them".to_owned(),
        ));
    }
    let secret = Secret::generate();
    let mut transaction = acting(database, by).await?;
    let query = sqlx::query_as(statement!("access/create"))
        .bind(&name)
        .bind(secret.hash().to_vec())
        .bind(secret.hint())
        .bind(new.role)
        .bind(&new.workspaces)
        .bind(new.expires_at.map(jiff_sqlx::Timestamp::from))
        .bind(by);
    match within(query.fetch_optional(&mut *transaction)).await {
        Ok(None) => Err(Error::Invalid("the token would have expired already".to_owned())),
        Ok(Some(token)) => {
            within(transaction.commit()).await?;
            Ok((token, secret))
        }
        Err(error) if error.code().as_deref() == Some("23505") => Err(Error::NameTaken(name)),
        Err(error) => Err(error.into()),
    }
}

/// Tokens in the order of their ids, after `after`; of those that are for workspaces in scope and for no others. Who is not to be
/// seen must not be counted either: neither pages nor their ends tell of others.
pub async fn list(database: &Database, after: Option<TokenId>, limit: i64) -> Result<Vec<Token>, db::Error> {
    let query = sqlx::query_as(statement!("access/list"))
        .bind(after.map_or(Uuid::nil(), |id| id.0))
        .bind(limit)
        .bind(None::<Uuid>)
        .bind(database.among(None));
    query.all(&database.own()).await
}

/// One token, if it is for workspaces in scope and for no others.
pub async fn token(database: &Database, id: TokenId) -> Result<Option<Token>, db::Error> {
    let query = sqlx::query_as(statement!("access/list"))
        .bind(Uuid::nil())
        .bind(1_i64)
        .bind(id)
        .bind(database.among(None));
    query.maybe(&database.own()).await
}

/// The token of this name, of those that are not revoked.
pub async fn named(database: &Database, name: &str) -> Result<Option<Token>, db::Error> {
    let query = sqlx::query_as(statement!("access/named")).bind(name);
    query.maybe(&database.own()).await
}

/// Revokes a token by its id or by its name; every server forgets it within seconds. Revoking it again changes nothing.
pub async fn revoke(database: &Database, which: &str, by: &str) -> Result<Token, Error> {
    let mut transaction = acting(database, by).await?;
    let query = sqlx::query_as(statement!("access/revoke"))
        .bind(which.parse::<Uuid>().ok())
        .bind(names::fold(which))
        .bind(by);
    let token = within(query.fetch_optional(&mut *transaction)).await?;
    within(transaction.commit()).await?;
    token.ok_or_else(|| Error::NotFound(which.to_owned()))
}

/// Who holds this secret; also one that was revoked or has expired, so that the refusal can say so.
pub async fn find(database: &Database, secret: &Secret) -> Result<Option<Token>, db::Error> {
    let query = sqlx::query_as(statement!("access/find")).bind(secret.hash().to_vec());
    query.maybe(&database.own()).await
}

/// Notes that a token was used; at most once a minute, whoever asks.
pub async fn touch(database: &Database, id: TokenId) -> Result<(), db::Error> {
    let query = sqlx::query(statement!("access/touch")).bind(id);
    query.run(&database.own()).await?;
    Ok(())
}

/// Is there a token that opens the door?
pub async fn any_active(database: &Database) -> Result<bool, db::Error> {
    sqlx::query_scalar(statement!("access/any_active"))
        .one(&database.own())
        .await
}

/// The tokens are out of the reach of the role that requests run as, so this runs as ourselves, under the caller's name.
pub(crate) async fn acting(
    database: &Database,
    by: &str,
) -> Result<sqlx::Transaction<'static, sqlx::Postgres>, db::Error> {
    let mut transaction = within(database.begin()).await?;
    let query = "select set_config('stationmaster.actor', $1, true)";
    within(sqlx::query(query).bind(by).execute(&mut *transaction)).await?;
    Ok(transaction)
}
