//! What people do to dispatchers: wish that one be removed.
//!
//! The wish is a column of the row. Its owner carries it out once nothing waits; a dispatcher that rests or has lost its owner is taken for
//! it first, so that whatever is left of its run is ended in the ordinary way. The supervisor makes one anew for which a signal was on
//! its way.

use serde_json::json;

use super::DispatcherId;
use super::inspect::{self, Dispatcher};
use crate::audit;
use crate::db::{self, Database, Read as _, statement, within};
use crate::id::WorkspaceId;
use crate::task::chain;

/// What came of a wish to remove a dispatcher.
#[derive(Debug)]
pub enum Removal {
    /// Its owner removes it as soon as it can; the dispatcher as it is now.
    Wished(Box<Dispatcher>),
    /// So many signals wait for it; they are routed first.
    Waiting(i64),
    /// There is none.
    Missing,
}

/// Wishes that a dispatcher be removed for which nothing waits.
pub async fn remove(database: &Database, id: &DispatcherId, actor: &str) -> Result<Removal, db::Error> {
    let Some(before) = inspect::show(database, id).await? else {
        return Ok(Removal::Missing);
    };
    let mut session = database.transaction().await?;
    let query = sqlx::query_scalar::<_, Option<WorkspaceId>>(statement!("dispatchers/wish_removal"))
        .bind(id)
        .bind(actor);
    let wished = within(query.fetch_optional(&mut *session)).await?;
    if let Some(workspace) = wished {
        let detail = json!({ "epoch": before.epoch });
        audit::write(&mut session, actor, "dispatcher.remove", workspace, &id.0, detail).await?;
        session.finish().await?;
    }
    let now = inspect::show(database, id).await?;
    Ok(match (wished, now) {
        // An owner that was fast has removed it already: as it was.
        (Some(_), now) => Removal::Wished(Box::new(now.unwrap_or(before))),
        (None, Some(now)) => Removal::Waiting(now.waiting),
        (None, None) => Removal::Missing,
    })
}

/// Makes dispatchers anew for which signals wait that were on their way while it was removed: nobody else would ever find them.
pub(super) async fn restore(database: &Database) -> Result<(), db::Error> {
    let query = sqlx::query_scalar(statement!("supervise/restore"));
    let restored: Vec<DispatcherId> = match query.all(database).await {
        // There are as many as there may be.
        Err(error) if error.is_of(&["SM001"]) => {
            tracing::error!(
                error = chain(&error),
                "Signals wait for a dispatcher that was removed, and it cannot be made anew"
            );
            return Ok(());
        }
        restored => restored?,
    };
    for dispatcher in restored {
        tracing::info!(%dispatcher, "Signals wait for a dispatcher that was removed; it is made anew");
    }
    Ok(())
}
