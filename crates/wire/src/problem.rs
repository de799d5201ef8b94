//! What is said when something is refused: RFC 9457, `application/problem+json`.

use serde::{Deserialize, Serialize};

use super::Taken;

/// Why a request was refused. `kind` never changes its meaning; the words may.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Which kind of problem: `urn:stationmaster:problem:` and a name.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The status of the answer.
    #[cfg_attr(feature = "openapi", schema(minimum = 400, maximum = 599))]
    pub status: u16,
    /// What is wrong with this very request, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Names the request in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Every field that is wrong, as far as one can be told without the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Who has the lock, when one was asked for that is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

impl Problem {
    /// The name of the kind, without what is the same in all.
    #[must_use]
    pub fn name(&self) -> &str {
        self.kind.rsplit(':').next().unwrap_or(&self.kind)
    }
}

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldError {
    /// Where it stands: a JSON pointer into the body (`/filter/status`), or the name of a parameter.
    pub field: String,
    /// The JSON pointer, when it stands in the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// What is wrong with it.
    pub detail: String,
}

impl FieldError {
    /// A field of the body by its JSON pointer, or a parameter by its name.
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let field = field.into();
        Self {
            pointer: field.starts_with('/').then(|| field.clone()),
            field,
            detail: detail.into(),
        }
    }
}
