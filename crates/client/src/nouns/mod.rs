//! The calls, one file a noun, one method a route.

mod alarms;
mod catalogue;
mod events;
mod executions;
mod operations;
mod signals;

pub use events::{EventStream, Told};
