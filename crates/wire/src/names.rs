//! Names: how a request says which thing it means, and what may have been meant.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// Which thing is meant: by its id, or by its name. One string on the wire; what looks like a UUID is an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    /// By its id.
    Id(Uuid),
    /// By its name. A workflow is named by its own name where the workspace is known, else as `workspace.workflow`.
    Name(String),
}

impl From<Uuid> for Reference {
    fn from(id: Uuid) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for Reference {
    fn from(text: &str) -> Self {
        Uuid::try_parse(text).map_or_else(|_| Self::Name(text.to_owned()), Self::Id)
    }
}

impl From<String> for Reference {
    fn from(text: String) -> Self {
        Uuid::try_parse(&text).map_or(Self::Name(text), Self::Id)
    }
}

impl FromStr for Reference {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.into())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Reference {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        String::schema()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Reference {}

/// Lets a request change how it says which things it means, field by field; the compiler asks for one that is left out.
macro_rules! with_ids {
    ($request:ident { $($id:ident: $type:ty),+ } $($rest:ident),+) => {
        impl<Id> $request<Id> {
            /// The same request about these.
            #[must_use]
            pub fn with_ids<To>(self, $($id: $type),+) -> $request<To> {
                $request { $($id,)+ $($rest: self.$rest,)+ }
            }
        }
    };
}

/// Requests as they come in: what they mean may be said by names.
pub mod asked {
    use super::Reference;

    /// A request to run a workflow.
    pub type Enqueue = crate::Enqueue<Reference>;
    /// Many requests at once.
    pub type BulkEnqueue = crate::BulkEnqueue<Reference>;
    /// A retry of everything that matches.
    pub type BulkRetry = crate::BulkRetry<Reference>;
    /// A cancel of everything that matches.
    pub type BulkCancel = crate::BulkCancel<Reference>;
    /// Another priority for everything that matches.
    pub type BulkPriority = crate::BulkPriority<Reference>;
    /// What is done about failures that match.
    pub type BulkFailures = crate::BulkFailures<Reference>;
    /// A replay of everything that matches.
    pub type BulkReplay = crate::BulkReplay<Reference>;
    /// What to set on a workflow.
    pub type WorkflowChange = crate::WorkflowChange<Reference>;
    /// An alarm to set.
    pub type NewAlarm = crate::NewAlarm<Reference>;
    /// What a trigger is to be.
    pub type TriggerChange = crate::TriggerChange<Reference>;
    /// A token to make.
    pub type NewToken = crate::NewToken<Reference>;
}

words! {
    /// What can be looked for.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Noun {
        /// A workspace.
        Workspace = "workspace",
        /// A workflow.
        Workflow = "workflow",
        /// An alarm.
        Alarm = "alarm",
        /// A token.
        Token = "token",
        /// A server.
        Server = "server",
        /// An item of the queue.
        Item = "item",
        /// An execution.
        Execution = "execution",
    }
}

/// What is looked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct NameQuery {
    /// What it is.
    #[cfg_attr(feature = "openapi", param(inline))]
    pub noun: Noun,
    /// Its name, its id, or the beginning of its id: at least four characters of it.
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub text: String,
    /// In this workspace: its id or name.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
}

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamesFound {
    /// What the text means; several when it is the beginning of several ids, or the name of several in several workspaces. At
    /// most twenty.
    pub items: Vec<NameFound>,
    /// Names that begin with the text, or else those that resemble it; at most twenty.
    pub near: Vec<String>,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct NameFound {
    /// Its id.
    pub id: Uuid,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The name of its workspace, if it is in one.
    pub workspace: Option<String>,
}
