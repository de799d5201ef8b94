//! The claim without the loop around it, for whoever times it: the transaction of a server itself, with its statements and
//! its constants. What it takes is started by nobody.

use tokio_util::sync::CancellationToken;

use super::admit::{Admission, Admitted};
use super::{ExecutionsContext, Settings};
use crate::db::{Database, Error};
use crate::id::ServerId;
use crate::surroundings::Surroundings;

/// Makes claims, one when it is told to.
pub struct Claims {
    admission: Admission,
    holder: ServerId,
}

impl Claims {
    /// On a database that has been migrated.
    pub fn new(database: Database) -> Result<Self, reqwest::Error> {
        let around = Surroundings::alone(database)?;
        let context = ExecutionsContext::new(Settings::default(), &around, CancellationToken::new());
        Ok(Self {
            admission: Admission::new(context),
            holder: around.presence.id(),
        })
    }

    /// One claim of at most `room` items. Answers how many it took.
    pub async fn claim(&self, room: usize) -> Result<usize, Error> {
        match self.admission.admit(self.holder, room).await {
            Ok(Admitted::Rows(_, rows)) => Ok(rows.iter().filter(|row| row.item_id.is_some()).count()),
            Ok(Admitted::Contended | Admitted::Nothing) => Ok(0),
            Err(uncertain) => Err(uncertain.error),
        }
    }
}
