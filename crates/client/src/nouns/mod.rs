//! The calls, one file a noun, one method a route.

mod catalogue;
mod events;
mod executions;
mod operations;

pub use events::{EventStream, Told};
