//! Stationmaster's core: the flow of work from a request to an engine. Knows PostgreSQL; knows neither HTTP servers, nor
//! the command line, nor the environment, nor Temporal.
//!
//! ```text
//!  request --> queue --> claim (limits, fairness) --> start on the engine --> settle --> close --> finished
//!                 ^            lease: holder, token, expiry          |
//!                 +---- release, recover, reconcile <----------------+
//! ```
//!
//! In reading order:
//!
//! * pure: [`id`], [`graph`], [`retry`], [`capacity`]
//! * the engine room: [`task`] (one contract for every loop), `lane`, `pipeline`
//! * exclusive things: [`presence`] (a server's own lease), `duty` (work that one server does for all), [`locks`] (named,
//!   shared with ShedLock applications)
//! * the lanes: [`executions`], [`alarms`]; [`signals`] and the [`dispatchers`] that route them; `attention` (whether those who
//!   bring work need to ring)
//! * what became of it: [`failures`] (what needs a person, of whatever lane), [`bulk`] (the same done to everything that matches),
//!   [`operations`] (the same by the servers, while nobody waits),
//!   [`history`] (what happened in each minute)
//! * outside: [`engine`], [`wake`]; [`tls`] (what a failed handshake means)
//! * who comes in: [`access`] (tokens), [`session`] (on whose behalf), [`audit`], [`events`] (what is told to listeners)
//! * the rest: [`catalogue`], [`names`] (which thing is meant), [`pages`] (of long lists), [`db`], [`schema`] (versions and parts), [`health`] (what
//!   can be seen of the database), [`pooler`] (is one in between), [`retention`], [`observe`], and [`station`], which puts the lanes together on what it lends them,
//!   `surroundings`

pub mod access;
pub mod alarms;
mod attention;
pub mod audit;
pub mod bulk;
pub mod capacity;
pub mod catalogue;
pub mod db;
pub mod dispatchers;
mod duty;
pub mod engine;
pub mod events;
pub mod executions;
pub mod failures;
mod gauges;
pub mod graph;
pub mod health;
pub mod history;
pub mod hosts;
pub mod id;
mod lane;
mod listen;
pub mod locks;
pub mod names;
pub mod observe;
mod obstacles;
pub mod operations;
pub mod pages;
mod pipeline;
mod pool;
pub mod pooler;
mod pooler_watch;
pub mod presence;
pub mod retention;
pub mod retry;
pub mod schema;
pub mod session;
pub mod signals;
pub mod station;
mod surroundings;
pub mod task;
pub mod tls;
pub mod views;
pub mod wake;
mod watch;

/// How rows are read: shapes that people are shown, and the words in them.
pub(crate) use stationmaster_wire::{columns, words};
