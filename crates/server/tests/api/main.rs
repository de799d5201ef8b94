//! The HTTP API as its users meet it: a real server, a real database, real tokens. What each route needs is read from the
//! document that the server itself serves, so a route that is added is tested without a word here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alarms;
mod attacker;
mod attacker_pages;
mod audit;
mod doors;
mod errors;
mod events;
mod failures;
mod fields;
mod fuzz;
mod history;
mod lane_walls;
mod lists;
mod matrix;
mod names;
mod operations;
mod repeats;
mod scene;
mod secrets;
mod shares;
mod signals;
mod steps;
#[allow(
    dead_code,
    unused_imports,
    reason = "shared with the tests of processes, which need more of it"
)]
#[path = "../processes/support/mod.rs"]
mod support;
mod tags;
mod tls;
mod tokens;
mod walk;
mod wall;
