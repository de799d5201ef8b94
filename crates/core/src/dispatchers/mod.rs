//! Dispatchers: one effective router of signals for each project and task queue.
//!
//! ```text
//!   every server: stands by, registered        the owner: one lease, one epoch
//!          |  the lease ran out, or was handed over     |
//!          +-----------------> take (epoch + 1) --------+--> replace the engine's run --> announce --> route
//!                                                       |                                  (fenced by the epoch)
//!   the supervisor, elected: heartbeats and open runs,  +--> renew, heartbeat ... hand over
//!   two looks, terminate before delete, audit
//! ```
//!
//! The invariant (I1): every write of a dispatcher names its epoch, and a write under an older one changes nothing. Leases only
//! make sure that there is an owner, never that there is one actor; heartbeats only tell the supervisor where to look. An owner
//! that cannot renew stops before its lease ends, by its own monotonic clock.
//!
//! Direction: this module knows [`signals`](crate::signals), whose inbox it routes, and [`engine`](crate::engine), whose contract it
//! uses; neither knows it. An engine meets only the `Desk` that it is given.
//!
//! Reading order: [`classify`] is pure; `ownership`, `runs`, `desk`, `looks` and [`heartbeats`] are the owner's work; [`supervisor`] and
//! `herald` look after the rest; [`inspect`] is what people see, [`remove`](mod@remove) what they do; `assembly` puts it together.

use std::time::Duration;

mod assembly;
pub mod classify;
mod desk;
pub mod heartbeats;
mod herald;
pub mod inspect;
mod looks;
mod ownership;
pub mod remove;
mod runs;
pub mod supervisor;

pub(crate) use assembly::Dispatchers;
pub use assembly::{HeartbeatChoice, Parts, Webhook};

pub use crate::engine::dispatchers::Tenure;
pub use crate::id::{DispatcherId, Epoch};

/// How the lane behaves. Validated by whoever makes it; the defaults are the product's.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Own dispatchers and stand by them. Otherwise this server only supervises.
    pub enabled: bool,
    /// Dispatchers that exist from the start: project and task queue.
    pub projects: Vec<(String, String)>,
    /// How long an owner's lease holds unless it is renewed.
    pub lease: Duration,
    /// How often an owner writes its heartbeat.
    pub heartbeat_interval: Duration,
    /// A heartbeat older than this is stale, and so is a server that was not heard of for this long.
    pub stale_after: Duration,
    /// How often the supervisor looks.
    pub scan_interval: Duration,
    /// How long the supervisor waits before its second look.
    pub second_look: Duration,
    /// How long one act of the supervisor may take.
    pub cleanup_timeout: Duration,
    /// How often a dispatcher checks itself and its servers.
    pub check_interval: Duration,
    /// Look into the inbox this often even when nobody rings.
    pub poll_interval: Duration,
    /// The most signals that one statement routes.
    pub batch_size: usize,
    /// Take servers off the lists of dispatchers when they are not heard of. Otherwise that is only told.
    pub evict: bool,
    /// The most servers that one self-check evicts.
    pub evict_batch: usize,
    /// The supervisor looks, counts and tells what it would do, and removes nothing.
    pub observe_only: bool,
    /// A run on Temporal continues as new after this many events of history.
    pub continue_after: u32,
    /// A dispatcher rests when nothing has waited for it for this long, unless the settings name it.
    pub rest_after: Duration,
    /// How long settled signals are kept.
    pub retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            projects: Vec::new(),
            lease: Duration::from_secs(15),
            heartbeat_interval: Duration::from_secs(10),
            stale_after: Duration::from_secs(20),
            scan_interval: Duration::from_secs(15),
            second_look: Duration::from_secs(2),
            cleanup_timeout: Duration::from_secs(5),
            check_interval: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
            batch_size: 500,
            evict: true,
            evict_batch: 50,
            observe_only: false,
            continue_after: 4_000,
            rest_after: Duration::from_mins(10),
            retention: Duration::from_hours(7 * 24),
        }
    }
}
