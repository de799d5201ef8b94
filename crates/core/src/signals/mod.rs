//! Signals: events that come in from outside and become executions.
//!
//! ```text
//! send -> [signals_inbox + signals_pending] -> route -> [queue item + signals_settled ROUTED]
//!                      ^                         |
//!                      +-------- replay ---- [signals_settled DEAD, with a reason]
//! ```
//!
//! Committed before they are acknowledged (I9), deduplicated by id, routed once: the change of status and the queue item are
//! one statement, written only under the `Fence` that it is given. Who routes, under which fence, and when, others decide: signals
//! know neither dispatchers nor engines.
//!
//! Reading order: [`send`], [`triggers`], `route`, then what people do: [`inspect`], [`replay`].

mod housekeeping;
pub mod inspect;
pub mod replay;
mod route;
pub mod schema;
pub mod send;
pub mod triggers;

use crate::words;

pub(crate) use housekeeping::Housekeeping;
pub(crate) use route::{Fence, route_batch};
pub use stationmaster_wire::SignalStatus;

/// The longest id, project, task queue or name.
pub const MAX_NAME: usize = 200;

/// The task queue of signals that name none.
pub const DEFAULT_TASK_QUEUE: &str = "default";

words! {
    /// Why a signal became a dead letter; a bounded set, so that the label of the metric stays bounded.
    pub enum DeadReason {
        /// No trigger has its name.
        UnknownSignal = "unknown_signal",
        /// The payload does not fit the schema of the trigger.
        InvalidPayload = "invalid_payload",
        /// The schema of the trigger cannot be read.
        InvalidSchema = "invalid_schema",
        /// The definition has no published version.
        NoVersion = "no_version",
        /// The queue would not take it.
        Refused = "refused",
    }
}
