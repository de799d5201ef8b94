//! The engine `temporal`: the only crate that knows Temporal.
//!
//! Place in the flow: the engine room hands an admitted execution to [`TemporalEngine`] by the contract of
//! [`stationmaster_core::engine`]; what comes back is a value of that contract. Nothing of Temporal's types leaves
//! this crate, and every future is boxed here, because Temporal's async bodies are expensive to compile and would
//! otherwise be compiled again in whoever calls them.
//!
//! ```text
//!   engine       the contract, one method after the other
//!    |- dispatch     what a start sends                          pure
//!    |- outcome      what an answer to a start means             pure
//!    |- run          one run: describe it, read how it ended
//!    |   |- close        the last event of a history as a Close  pure
//!    |   `- payload      payloads and failures as JSON           pure
//!    |- ours         whose run it is: ours, or a stranger's under our id
//!    |- health       what can be seen of the cluster, for people
//!    |- sweep        which runs have closed, again and again
//!    |- visibility   the store that lists many runs
//!    `- link         the one connection, made when first needed
//!        |- bond         which Temporal it must lead to, and the proof
//!        `- transport    a connection that is never made a second time
//!   dispatchers  dispatchers as workflows, and the worker that runs them
//!   config       what the outside has to say, checked once
//! ```
//!
//! The invariant that all of it keeps: a start answers `Unavailable` only when nothing was started for certain;
//! whatever might have reached the server is `InDoubt`. This crate knows no queue, no limit and no database.

mod bond;
mod close;
mod config;
mod dispatch;
mod dispatchers;
mod engine;
mod health;
mod link;
mod obstacle;
mod ours;
mod outcome;
mod payload;
mod run;
mod sweep;
mod transport;
mod visibility;

pub use config::{ClientIdentity, ConfigError, TemporalConfig, TemporalTls};
pub use dispatchers::TemporalDispatchers;
pub use engine::TemporalEngine;
pub use health::Cluster;
