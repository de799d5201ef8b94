//! The watch on the way through a pooler. The watch on the database (`watch.rs`) goes past the pooler, so it does not see one that falls
//! silent: a host that was switched off, or a gateway in between that has forgotten its connections.
//!
//! It judges likewise: a connection that does nothing else is asked for a sign of life once a second; when none comes, and a new one through the
//! pooler gets one where the old one still does not, everything that waits is given up. A pooler whose places are all taken answers
//! neither, and is left in peace: whoever waits there gets his turn.

use sqlx::{Connection as _, PgConnection};
use tokio::time::timeout;

use crate::db::{self, Database};
use crate::listen::Bells;
use crate::task::{Next, Pass};
use crate::watch::{EVERY, PATIENCE, SECOND_CHANCE};

/// See the module.
pub(crate) struct PoolerWatch {
    database: Database,
    bells: Bells,
    connection: Option<PgConnection>,
}

/// What asking for a sign of life came to.
enum Sign {
    Answered,
    /// The connection is gone, and whoever uses another one knows it too.
    Closed,
    /// Nothing on the old connection; a new one answers.
    OnlyElsewhere(PgConnection),
    /// Nothing anywhere.
    Nowhere,
}

impl PoolerWatch {
    pub(crate) fn new(database: Database, bells: Bells) -> Self {
        Self {
            database,
            bells,
            connection: None,
        }
    }
}

impl Pass for PoolerWatch {
    fn name(&self) -> &'static str {
        "pooler"
    }

    /// That the pooler is away is no failure of this pass: the heartbeat does not come through then, and readiness tells that.
    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let Some(mut connection) = self.connection.take() else {
            self.connection = self.database.reach_pooler().await;
            return Ok(Next::After(EVERY));
        };
        self.connection = match ask(&mut connection, &self.database).await {
            // The old one is kept although it says nothing: what it answers when a new one does tells the one from the other.
            Sign::Answered | Sign::Nowhere => Some(connection),
            Sign::Closed => None,
            Sign::OnlyElsewhere(another) => {
                tracing::warn!(
                    "The pooler was silent; what waited for it is given up, and the way is open again"
                );
                self.database.give_up();
                self.bells.ring_all();
                Some(another)
            }
        };
        Ok(Next::After(EVERY))
    }
}

async fn ask(connection: &mut PgConnection, database: &Database) -> Sign {
    let mut sign = std::pin::pin!(connection.ping());
    let answered = |answer: Result<(), sqlx::Error>| answer.map_or(Sign::Closed, |()| Sign::Answered);
    if let Ok(answer) = timeout(PATIENCE, &mut sign).await {
        return answered(answer);
    }
    let Some(another) = database.reach_pooler().await else {
        return Sign::Nowhere;
    };
    match timeout(SECOND_CHANCE, &mut sign).await {
        Ok(answer) => answered(answer),
        Err(_) => Sign::OnlyElsewhere(another),
    }
}
