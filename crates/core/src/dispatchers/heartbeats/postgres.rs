//! Heartbeats in PostgreSQL: a row per dispatcher.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Beat, Heartbeat, Heartbeats, Unavailable};
use crate::db::{self, Database, statement, within};
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

type Row = (DispatcherId, String, String, ServerId, Epoch, f64);

impl Heartbeats for PostgresHeartbeats {
    fn beat<'a>(&'a self, tenure: &'a Tenure) -> BoxFuture<'a, Result<Beat, Unavailable>> {
        async move {
            let query = sqlx::query_scalar::<_, String>(statement!("heartbeats/beat"))
                .bind(&tenure.dispatcher_id)
                .bind(&tenure.project)
                .bind(&tenure.task_queue)
                .bind(tenure.owner)
                .bind(tenure.epoch);
            let written = within(query.fetch_optional(self.database.keepers().pool()))
                .await
                .map_err(unavailable)?;
            Ok(written.map_or(Beat::Superseded, |_| Beat::Written))
        }
        .boxed()
    }

    /// A database that is away is told by everything else.
    fn check(&self) -> BoxFuture<'_, Result<(), Unavailable>> {
        async { Ok(()) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Heartbeat>, Unavailable>> {
        async move {
            let query = sqlx::query_as(statement!("heartbeats/list"));
            let rows: Vec<Row> = within(query.fetch_all(self.database.pool()))
                .await
                .map_err(unavailable)?;
            let found =
                rows.into_iter()
                    .map(
                        |(dispatcher_id, project, task_queue, server_id, epoch, age)| Heartbeat {
                            dispatcher_id,
                            project,
                            task_queue,
                            server_id,
                            epoch,
                            age: Duration::try_from_secs_f64(age).unwrap_or_default(),
                        },
                    );
            Ok(found.collect())
        }
        .boxed()
    }

    fn remove<'a>(
        &'a self,
        dispatcher: &'a DispatcherId,
        epoch: Epoch,
        server: ServerId,
    ) -> BoxFuture<'a, Result<bool, Unavailable>> {
        async move {
            let query = sqlx::query_scalar::<_, String>(statement!("heartbeats/remove"))
                .bind(dispatcher)
                .bind(epoch)
                .bind(server);
            let gone = within(query.fetch_optional(self.database.keepers().pool()))
                .await
                .map_err(unavailable)?;
            Ok(gone.is_some())
        }
        .boxed()
    }
}
