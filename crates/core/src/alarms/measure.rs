//! The claim without the loop around it, for whoever times it: the transaction of a server itself, with its statements and
//! its constants. What it takes is delivered by nobody.

use super::lease::lease;
use super::{AlarmsContext, Settings, Setup};
use crate::db::{Database, Error};
use crate::surroundings::Surroundings;

/// Makes claims, one when it is told to.
pub struct Claims(AlarmsContext);

impl Claims {
    /// On a database that has been migrated.
    pub fn new(database: Database) -> Result<Self, reqwest::Error> {
        let around = Surroundings::alone(database)?;
        let setup = Setup::new(Settings::default())?;
        Ok(Self(AlarmsContext::new(setup, &around)))
    }

    /// One claim of at most about `room` occurrences. Answers how many it took.
    pub async fn claim(&self, room: usize) -> Result<usize, Error> {
        let (leased, _) = lease(&self.0, self.0.presence.id(), room, f64::NEG_INFINITY).await?;
        Ok(leased.len())
    }
}
