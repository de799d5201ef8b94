//! A private, real `PostgreSQL` as a child process.
//!
//! `stationmaster dev` keeps its data in one, and tests and benchmarks make throw-away ones, so that everything runs
//! on the dialect of production with nothing to configure. The modules in reading order, each consuming what the one
//! before it made:
//!
//! ```text
//! binaries  ->  settings  ->  folder (+ account, lock)  ->  predecessor  ->  process (+ watchdog, log)  ->  server
//! find it       say how       one owner, a cluster          nobody else      a running postgres            the handle
//! ```
//!
//! What holds at all times:
//!
//! - A folder has at most one owner: its lock file is held by `flock` as long as a [`Server`] lives.
//! - The server ends with its owner, also when the owner is killed: a watchdog waits for the end of a pipe.
//! - The server listens on loopback and on a socket in its own folder, and both ask for a password.
//! - Nothing here is asynchronous, reads a setting from the environment (the search path for programs apart), or knows
//!   what is stored in the database.

mod account;
mod binaries;
mod error;
mod folder;
mod lock;
mod log;
mod predecessor;
mod process;
mod replica;
mod server;
mod settings;
mod throw_away;
mod watchdog;

pub use account::{Unreachable, reachable};
pub use binaries::{Binaries, NotFound, OLDEST_MAJOR, Version};
pub use error::StartError;
pub use server::{Server, free_port};
pub use settings::{Afterwards, Durability, Settings, Shutdown};
