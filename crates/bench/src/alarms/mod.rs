//! The benchmark of alarms: very many due at once over several targets, a healthy trickle, and the cost of a claim beside a
//! million alarms that are not due. The ceiling is the same HTTP client on the same receivers, without a product around it.

pub mod burst;
pub mod claim_cost;
mod receiver;

pub use receiver::Receiver;
