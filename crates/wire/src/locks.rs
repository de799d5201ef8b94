//! Named locks: leases that ShedLock applications share, each with a token that fences.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// Does somebody hold it now?
    pub held: bool,
    /// Who holds it, or held it last.
    pub by: String,
    /// When that one took it.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub since: Option<Timestamp>,
    /// Until when it is held; in the past: when it became free; `null`: for ever.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub until: Option<Timestamp>,
    /// The token of that holder; `null`: an application that knows no tokens.
    pub token: Option<i64>,
}

/// The locks there are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Locks {
    /// At most 1,000, those that are held first.
    pub items: Vec<Lock>,
}

/// A wish for a lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockRequest {
    /// How long it holds unless it is extended, in seconds: from a millisecond to ten years.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.001, maximum = 315_360_000))]
    pub at_most: f64,
    /// How long it stays held even when it is given back, in seconds; no longer than `at_most`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 315_360_000, default = 0))]
    pub at_least: f64,
    /// Who asks, in words for people; the name of the token when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub owner: Option<String>,
}

/// A lock that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Acquired {
    /// The lock.
    pub name: String,
    /// The fence: grows with every acquisition, and every write that the lock protects should name it.
    pub token: i64,
    /// What stands in `locked_by`: the owner, and an id of this acquisition alone.
    pub holder: String,
    /// When it ends unless it is extended, by the database's clock.
    pub until: Timestamp,
}

/// Who has a lock that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Taken {
    /// Who; `null` when it was freed at that very moment.
    pub by: Option<String>,
    /// Until when; `null`: for ever, or unknown.
    pub until: Option<Timestamp>,
}

/// A wish to hold a lock for longer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExtendLock {
    /// The token under which it is held.
    pub token: i64,
    /// How long it holds from now on, in seconds.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.001, maximum = 315_360_000))]
    pub at_most: f64,
}

/// A lock that was extended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockExtended {
    /// When it ends unless it is extended again.
    pub until: Timestamp,
}

/// Whose hold on a lock is to end: that of a token, or that of a holder who was seen.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct LockQuery {
    /// Give the lock back that is held under this token; what must still be held by its terms stays held until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<i64>,
    /// Free it by hand, whatever its terms, when it is still held by this one (`by` of the lock). The holder may still be at
    /// work and learns of it only when it extends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 300))]
    pub holder: Option<String>,
}

/// What came of giving a lock back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnlockAnswer {
    /// The lock.
    pub name: String,
    /// Was it this call that ended the hold? `false`: it had ended before.
    pub released: bool,
    /// When it becomes free, when its terms keep it held for longer; absent: it is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_at: Option<Timestamp>,
}
