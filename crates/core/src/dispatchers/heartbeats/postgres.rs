//! Heartbeats in PostgreSQL: a row per dispatcher.

use futures::FutureExt as _;

use super::{Answered, Beat, Heartbeat, Heartbeats, Unavailable};
use crate::db::{self, Database, Read as _, statement};
use crate::dispatchers::{DispatcherId, Epoch, Tenure};
use crate::id::ServerId;
use crate::task::chain;

/// See the module.
pub(in crate::dispatchers) struct PostgresHeartbeats {
    pub(in crate::dispatchers) database: Database,
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over results")]
fn unavailable(error: db::Error) -> Unavailable {
    Unavailable {
        store: "PostgreSQL",
        reason: chain(&error),
    }
}

impl Heartbeats for PostgresHeartbeats {
    fn beat<'a>(&'a self, tenure: &'a Tenure) -> Answered<'a, Beat> {
        async move {
            let query = sqlx::query_scalar::<_, String>(statement!("heartbeats/beat"))
                .bind(&tenure.dispatcher_id)
                .bind(&tenure.project)
                .bind(&tenure.task_queue)
                .bind(tenure.owner)
                .bind(tenure.epoch);
            let written = query.maybe(&self.database.keepers()).await.map_err(unavailable)?;
            Ok(written.map_or(Beat::Superseded, |_| Beat::Written))
        }
        .boxed()
    }

    /// A database that is away is told by everything else.
    fn check(&self) -> Answered<'_, ()> {
        async { Ok(()) }.boxed()
    }

    fn list(&self) -> Answered<'_, Vec<Heartbeat>> {
        async move {
            let query = sqlx::query_as(statement!("heartbeats/list"));
            query.all(&self.database).await.map_err(unavailable)
        }
        .boxed()
    }

    fn remove<'a>(
        &'a self,
        dispatcher: &'a DispatcherId,
        epoch: Epoch,
        server: ServerId,
    ) -> Answered<'a, bool> {
        async move {
            let query = sqlx::query_scalar::<_, String>(statement!("heartbeats/remove"))
                .bind(dispatcher)
                .bind(epoch)
                .bind(server);
            let gone = query.maybe(&self.database).await.map_err(unavailable)?;
            Ok(gone.is_some())
        }
        .boxed()
    }
}
