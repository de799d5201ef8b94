//! Dispatchers as their operators meet them: real servers as processes, a real Temporal, a real Redis; and what is done to them:
//! killed, stopped, continued, restarted in turn, cut off. What must hold afterwards is read from the public relations and from
//! Temporal's own histories.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../processes/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests use the rest of it")]
mod support;

mod burst;
mod leftovers;
mod line;
mod outages;
mod redis;
mod removal;
mod rest;
mod standby;
mod takeover;
mod zombies;
