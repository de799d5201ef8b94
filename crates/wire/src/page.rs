//! Pages of lists.

use serde::{Deserialize, Serialize};

/// A page of a list. It may hold fewer things than asked for and still not be the last.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The things on this page.
    pub items: Vec<T>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

words! {
    /// Which come first.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Order {
        /// The newest.
        #[default]
        Newest = "newest",
        /// The oldest.
        Oldest = "oldest",
    }
}

/// Which page of a list that has no filters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct PageQuery {
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}
