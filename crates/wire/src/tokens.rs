//! Tokens: who may come in, what for, and for how long.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

words! {
    /// What a token may do; each role includes the ones before it.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Token {
    /// Its id.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
    /// The last characters of its secret before the checksum, to tell tokens apart.
    pub hint: String,
    /// What it may do.
    pub role: Role,
    /// Where; absent: in all workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspaces: Option<Vec<Uuid>>,
    /// What those are called, in the same order; null where one is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_names: Option<Vec<Option<String>>>,
    /// When it was made.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// When it ends; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub last_used_at: Option<Timestamp>,
    /// Does it open the door now?
    pub active: bool,
}

/// A token to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "Id: Deserialize<'de>"))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewToken<Id = Uuid> {
    /// What people call it; unique among tokens that are not revoked.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100))]
    pub name: String,
    /// What it may do; no more than the token that makes it.
    pub role: Role,
    /// Where; all workspaces when left out. No more than the token that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>, min_items = 1, max_items = 1000))]
    pub workspaces: Option<Vec<Id>>,
    /// When it ends; never when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

with_ids! {
    NewToken { workspaces: Option<Vec<To>> }
    name, role, expires_at
}

/// A token that was made. The secret is told this once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenMade {
    /// The token.
    pub token: Token,
    /// Its secret, to be sent as `Authorization: Bearer <secret>`. Nobody can tell it again.
    pub secret: String,
}

impl std::fmt::Debug for TokenMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenMade")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
