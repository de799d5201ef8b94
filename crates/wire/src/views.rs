//! Views: addresses of lists that people keep.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An address of a list with its filters, kept under a name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct View {
    /// Its id.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
    /// The address on a server, with its filters.
    pub path: String,
    /// For all whose tokens are for all workspaces.
    pub shared: bool,
    /// Is it kept by the one that asks?
    pub own: bool,
    /// Who kept it.
    pub made_by: String,
    /// Since when it is kept.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
}

/// All views.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Views {
    /// Those of the one that asks and those for all, by name.
    pub items: Vec<View>,
}

/// A view to keep. A name that its owner uses already gets the new address.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewView {
    /// What people call it, in any words.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100))]
    pub name: String,
    /// The address of a page of the dashboard, with its filters, as in `/queue?status=PENDING&workspace=shop`.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 2000, pattern = "^/[!-~]*$")
    )]
    pub path: String,
    /// For all whose tokens are for all workspaces, too.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub shared: bool,
}
