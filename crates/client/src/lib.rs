//! Stationmaster over HTTP: what is said on the wire, and a typed client that says it.
//!
//! ```text
//! your program -> Client (one method a route) -> HTTP -> Stationmaster
//!                   wire types in, wire types out; what is refused is a typed Error
//! ```
//!
//! The server uses the same wire types, so the two cannot drift apart. This crate knows nothing of the core: a type of the
//! wire may stay as it is while the inside changes.
//!
//! Reading order: [`wire`], `error`, `client`, then the nouns in `nouns`.

mod client;
mod error;
mod nouns;
pub mod wire;

pub use client::{Client, ClientBuilder};
pub use error::{Error, Result};
pub use nouns::{EventStream, Told};
