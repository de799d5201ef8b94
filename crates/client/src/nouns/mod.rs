//! The calls, one file a noun, one method a route.

mod catalogue;
mod events;
mod executions;
mod locks;
mod operations;

pub use events::{EventStream, Listening, Told};
pub use locks::{Extended, Locked, Unlocked};
