//! The calls, one file a noun, one method a route.

mod alarms;
mod bulk;
mod catalogue;
mod events;
mod executions;
mod failures;
mod keep;
mod locks;
mod operations;
mod signals;

pub use events::{EventStream, Listening, Told};
pub use keep::{Asked, KeptLock};
pub use locks::{Extended, Locked, Unlocked};
