//! The benchmark of the product, a program of its own: loads a queue, runs servers, measures what happened, and in the same
//! run measures the ceiling: the same work as bare SQL, or bare starts on the engine.
//!
//! What happened is read from the rows afterwards, not sampled: how many executions a workspace had at once at every
//! instant follows exactly from when each was claimed and when it ended.

pub mod alarms;
pub mod bare;
pub mod claim_cost;
pub mod enqueue;
pub mod fixture;
pub mod horizon;
pub mod idle;
pub mod lists;
pub mod measure;
pub mod run;
pub mod scenario;
