//! Identifiers as types of their own, so that an execution's id can never stand where a workspace's belongs.
//!
//! Ids are UUIDs of version 7: they grow with time, which keeps the b-trees that hold them dense. A dispatcher's id is made
//! from the names of what it serves.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

mod dispatcher;

pub use dispatcher::DispatcherId;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
        )]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new id, later than every id this process made before.
            #[must_use]
            #[expect(clippy::new_without_default, reason = "an id that appears by default is a mistake")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )+};
}

ids! {
    /// A tenant.
    WorkspaceId;
    /// A workflow definition.
    DefinitionId;
    /// One immutable version of a definition.
    VersionId;
    /// A request to run a definition.
    ItemId;
    /// A run of a definition. Fixed before the first try to start it and the same in every try.
    ExecutionId;
    /// A token: who comes in by HTTP.
    TokenId;
    /// A schedule that fires wakes.
    AlarmId;
    /// One `stationmaster` process, for as long as its heartbeat holds.
    ServerId;
}

/// The fence of a claim: grows with every claim, and every later write names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct Token(pub i64);

/// The fence of a dispatcher: grows with every owner, and every later write names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct Epoch(pub i64);

/// An engine on record: which of those that have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct EngineId(pub i32);

impl ExecutionId {
    /// The id under which the engine knows this execution.
    #[must_use]
    pub fn workflow_id(self) -> String {
        format!("execution-{self}")
    }

    /// The execution that an engine's workflow id names, when it is one of ours.
    #[must_use]
    pub fn from_workflow_id(workflow_id: &str) -> Option<Self> {
        workflow_id.strip_prefix("execution-")?.parse().ok()
    }
}

impl AlarmId {
    /// The id under which targets know one occurrence: the same in every try.
    #[must_use]
    pub fn wake_id(self, scheduled_for: jiff::Timestamp) -> String {
        format!("{self}:{scheduled_for}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_id_names_its_execution_and_nothing_else() {
        let id = ExecutionId::new();
        assert_eq!(ExecutionId::from_workflow_id(&id.workflow_id()), Some(id));
        assert_eq!(ExecutionId::from_workflow_id("execution-7"), None);
        assert_eq!(ExecutionId::from_workflow_id(&id.to_string()), None);
    }
}
