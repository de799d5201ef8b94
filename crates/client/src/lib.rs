//! Stationmaster over HTTP: what is said on the wire, and a typed client that says it.
//!
//! ```text
//! your program -> Client (one method a route) -> HTTP, or in process -> Stationmaster
//!                   wire types in, wire types out; what is refused is a typed Error
//! ```
//!
//! The wire types are a crate of their own, which the server shares, so the two cannot drift apart. This crate knows nothing of the
//! core.
//!
//! What may safely be repeated is repeated ([`Retries`]): reading, writing what a repeat would only write again, and every POST,
//! which the client gives an `Idempotency-Key` of its own unless it is given one. Whoever receives wakes verifies them with
//! [`webhook`].
//!
//! Reading order: [`wire`], `error`, `retry`, `transport`, `client`, `call`, then the nouns in `nouns`, `pages`, [`webhook`].

mod call;
mod client;
mod error;
mod nouns;
mod pages;
mod retry;
mod transport;
pub mod webhook;

pub use client::{Client, ClientBuilder};
pub use error::{Error, Result};
pub use nouns::{Asked, EventStream, Extended, KeptLock, Listening, Locked, Told, Unlocked};
pub use pages::Paged;
pub use retry::Retries;
/// What is said on the wire.
pub use stationmaster_wire as wire;
pub use transport::{BoxError, Request, Response};
