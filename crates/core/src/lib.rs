//! Placeholder.
pub mod engine;
pub mod graph;
pub mod id;
