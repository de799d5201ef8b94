//! The embedded engine: runs executions and dispatchers inside this process, for `dev` and for people without Temporal.
//!
//! Its runs end with their server and leave nothing behind: executions are claimed again by others and go on from what `run`
//! remembers; a dispatcher's run begins anew with the next owner.

mod dispatchers;
mod executions;
pub mod nodes;
mod run;

pub use dispatchers::EmbeddedDispatchers;
pub use executions::EmbeddedEngine;

/// What the engine is called on record.
pub(super) const NAME: &str = "embedded";
