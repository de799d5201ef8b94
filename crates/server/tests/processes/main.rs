//! Real servers as processes of their own, and what is done to them: killed, stopped, cut off from Temporal and from
//! PostgreSQL. What must hold afterwards is read from the public relations and from the engine itself.
//!
//! To reach a moment between two steps of a server without a hook in it, a test stands in its way from outside: a table
//! is locked, or a proxy before Temporal holds requests or answers back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alarm_kills;
mod alarm_outages;
mod alarm_zombies;
mod away;
mod cancels;
mod crowds;
mod dev;
mod dispatch;
mod doctor;
mod engines;
mod environment;
mod exclusive;
mod failover;
mod floods;
mod idle;
mod kills;
mod life;
mod limits;
mod network;
mod operations;
mod outages;
mod partition;
mod poison;
mod pooler;
mod postgres;
mod reconciler;
mod refusals;
mod servers;
mod shutdown;
mod silence;
mod storm;
mod support;
mod targets;
mod tls;
mod traces;
mod transcript;
mod zombies;
