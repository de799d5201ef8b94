//! When alarms fire: cron expressions, IANA zones, and what happens when a clock is put forward or back. Pure: it knows no
//! database, no task, and no clock of its own; who asks says from when on.
//!
//! ```text
//!  "30 2 * * *" --> Cron --> calendar: the local times that match --+
//!                                                                  +--> Series: instants, with a note where a clock moved
//!  "Europe/Paris" --> Zone --> clock: what the local clock shows ---+
//! ```
//!
//! In reading order: [`Cron`] (the words), `calendar` (the dates and times that they mean), `clock` (how the time of a zone runs),
//! [`Series`] (the instants), [`resolve`] (the instant of one local time).
//!
//! Zone data is what comes with the binary, never what the machine has: every server computes the same fires, and
//! [`zone_data_version`] says from which data.

mod calendar;
mod clock;
mod cron;
mod describe;
mod dst;
mod resolve;
mod series;
mod values;
mod zone;

pub use cron::{Cron, ParseError};
pub use dst::{DstPolicy, Note, UnknownPolicy};
pub use resolve::{Resolved, resolve};
pub use series::{Fire, Series};
pub use zone::{UnknownZone, Zone, zone, zone_data_version, zones};
