//! The command line as its users meet it: the real binary, a real database, exit codes and words.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alarms;
mod contexts;
mod doctor;
mod errors;
mod languages;
mod locks;
mod remote;
mod schema;
mod served;
mod server;
mod settings;
mod snapshots;
mod support;
mod walk;
mod watch;
