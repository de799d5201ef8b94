//! The command line as its users meet it: the real binary, a real database, exit codes and words.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alarm_walk;
mod alarms;
mod apply;
mod bench;
mod called;
mod completion;
mod contexts;
mod doctor;
mod errors;
mod hints;
mod languages;
mod locks;
mod looks;
mod names;
mod operations;
mod remote;
mod remote_lanes;
mod remote_locks;
mod schema;
mod served;
mod server;
mod settings;
mod signals;
mod snapshots;
mod support;
mod tables;
mod top;
mod walk;
mod watch;
