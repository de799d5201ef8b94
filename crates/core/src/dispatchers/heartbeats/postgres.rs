//! Heartbeats in PostgreSQL: a row per dispatcher.

use futures::FutureExt as _;

use super::{Answered, Found, Heartbeats, Unavailable, Unread};
use crate::db::{self, Database, Read as _, column, statement};
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
    fn beat<'a>(&'a self, tenures: &'a [Tenure]) -> Answered<'a, usize> {
        async move {
            let query = sqlx::query_scalar::<_, String>(statement!("heartbeats/beat"))
                .bind(column(tenures, |tenure| tenure.dispatcher_id.0.as_str()))
                .bind(column(tenures, |tenure| tenure.project.as_str()))
                .bind(column(tenures, |tenure| tenure.task_queue.as_str()))
                .bind(column(tenures, |tenure| tenure.owner))
                .bind(column(tenures, |tenure| tenure.epoch));
            let written = query.all(&self.database.keepers()).await.map_err(unavailable)?;
            Ok(written.len())
        }
        .boxed()
    }

    /// A database that is away is told by everything else.
    fn check(&self) -> Answered<'_, ()> {
        async { Ok(()) }.boxed()
    }

    fn list(&self) -> Answered<'_, Found> {
        async move {
            let query = sqlx::query_as(statement!("heartbeats/list"));
            Ok(Found {
                heartbeats: query.all(&self.database).await.map_err(unavailable)?,
                unread: Vec::new(),
            })
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

    /// Nobody but us writes into our table.
    fn remove_unread<'a>(&'a self, _found: &'a Unread) -> Answered<'a, bool> {
        async { Ok(false) }.boxed()
    }
}
