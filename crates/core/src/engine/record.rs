//! Which engine it is. An engine is known by what tells it from every other one, not by where it was found: an address can lead to
//! another cluster tomorrow, and a namespace can be mistyped.
//!
//! The first server that meets an engine puts it on record. Every other one compares, before anything is asked of the engine or
//! sent to it; one that meets another engine under the same name does nothing. What runs carries the number of the engine that it
//! runs on, and only servers of that engine judge it. Changing engines is somebody's decision ([`change`]).

use crate::db::{self, Database, Read as _, statement, within};
use crate::executions;
use crate::id::{EngineId, ExecutionId};

/// The engine that is inside each server, by the schema.
pub(crate) const INSIDE: EngineId = EngineId(1);

const AT_ONCE: i64 = 500;

/// An engine, as it tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The same at every meeting, and of no other engine.
    pub key: String,
    /// Where it was found, in words for people.
    pub place: String,
}

/// The engine is not the one on record.
#[derive(Debug, Clone, thiserror::Error)]
#[error("this is not the engine on record: {name} is {recorded}, and this server found {found}")]
pub struct OtherEngine {
    /// The name of both.
    pub name: String,
    /// Where the one on record was found.
    pub recorded: String,
    /// Where this one was.
    pub found: String,
}

/// Compares an engine with the one on record; the first one is put there.
pub async fn recognise(
    database: &Database,
    name: &str,
    identity: &Identity,
    by: &str,
) -> Result<Result<EngineId, OtherEngine>, db::Error> {
    loop {
        let met: Option<(EngineId, bool, String)> = sqlx::query_as(statement!("engines/recognise"))
            .bind(name)
            .bind(&identity.key)
            .bind(&identity.place)
            .bind(by)
            .maybe(database)
            .await?;
        // Nothing: another server was first, by a hair.
        if let Some((id, same, recorded)) = met {
            return Ok(if same {
                Ok(id)
            } else {
                Err(other(name, &recorded, identity))
            });
        }
    }
}

fn other(name: &str, recorded: &str, found: &Identity) -> OtherEngine {
    OtherEngine {
        name: name.to_owned(),
        recorded: recorded.to_owned(),
        found: found.place.clone(),
    }
}

/// An engine on record.
#[derive(Debug, Clone, sqlx::FromRow, serde::Serialize)]
pub struct Recorded {
    /// What it is called.
    pub name: String,
    /// What tells it from every other one.
    pub identity: String,
    /// Where it was found.
    pub place: String,
    /// Who put it on record.
    pub recorded_by: String,
    /// When.
    pub recorded_at: String,
    /// Since when it is not used any more.
    pub retired_at: Option<String>,
    /// What holds a slot on it.
    pub active: i64,
}

/// The engines on record, those in use first.
pub async fn list(database: &Database) -> Result<Vec<Recorded>, db::Error> {
    sqlx::query_as(statement!("engines/list")).all(database).await
}

/// What a change would meet: what is being started on the engine, and what runs on it.
pub async fn counted(database: &Database, name: &str) -> Result<(i64, i64), db::Error> {
    let query = sqlx::query_as(statement!("engines/counted")).bind(name);
    query.one(database).await
}

/// What becomes of what runs on the engine that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// It is lost with it: ended as FAILED with the reason `engine_lost`, its slots are free.
    End,
    /// It is on the new one too, which was made from the old: it keeps its slots and its ids.
    Keep,
}

/// What came of a change.
#[derive(Debug)]
pub enum Changed {
    /// The other engine is on record.
    Done {
        /// Where the one before was found; none: there was none, or it was this one already.
        from: Option<String>,
        /// Executions that were ended, or kept.
        executions: u64,
    },
    /// Servers that work with an engine of this name, and must be stopped first.
    Served(Vec<String>),
}

/// Puts another engine on record in the place of the current one of that name. What was interrupted is finished by a repeat.
pub async fn change(
    database: &Database,
    name: &str,
    identity: &Identity,
    runs: Runs,
    by: &str,
) -> Result<Changed, db::Error> {
    let mut transaction = database.begin().await?;
    let current: Option<(EngineId, String, String)> = within(
        sqlx::query_as(statement!("engines/lock"))
            .bind(name)
            .fetch_optional(&mut *transaction),
    )
    .await?;
    let served: Vec<String> = within(
        sqlx::query_scalar(statement!("engines/served_by"))
            .bind(name)
            .fetch_all(&mut *transaction),
    )
    .await?;
    if !served.is_empty() {
        return Ok(Changed::Served(served));
    }
    let (id, from) = match current {
        Some((id, key, _)) if key == identity.key => (id, None),
        current => {
            if let Some((id, ..)) = &current {
                let retire = sqlx::query(statement!("engines/retire")).bind(id);
                within(retire.execute(&mut *transaction)).await?;
            }
            let record = sqlx::query_scalar(statement!("engines/record"))
                .bind(name)
                .bind(&identity.key)
                .bind(&identity.place)
                .bind(by);
            let id: EngineId = within(record.fetch_one(&mut *transaction)).await?;
            (id, current.map(|(_, _, place)| place))
        }
    };
    let detail = serde_json::json!({
        "from": from, "to": identity.place, "identity": identity.key,
        "runs": match runs { Runs::End => "end", Runs::Keep => "keep" },
    });
    let audit = sqlx::query(statement!("reconcile/audit"))
        .bind(by)
        .bind("engine.change")
        .bind(None::<uuid::Uuid>)
        .bind(name)
        .bind(detail.to_string());
    within(audit.execute(&mut *transaction)).await?;
    let mut executions = 0;
    if runs == Runs::Keep {
        let keep = sqlx::query(statement!("engines/move_runs")).bind(name).bind(id);
        executions = within(keep.execute(&mut *transaction)).await?.rows_affected();
    }
    transaction.commit().await?;
    if runs == Runs::End {
        executions = end_stranded(database, name, by).await?;
    }
    Ok(Changed::Done { from, executions })
}

/// Ends what holds a slot on engines that are retired.
async fn end_stranded(database: &Database, name: &str, by: &str) -> Result<u64, db::Error> {
    let mut ended = 0;
    loop {
        let stranded: Vec<ExecutionId> = sqlx::query_scalar(statement!("engines/stranded"))
            .bind(name)
            .bind(AT_ONCE)
            .all(database)
            .await?;
        if stranded.is_empty() {
            return Ok(ended);
        }
        ended += executions::end_lost(database, &stranded, by).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_are_named_when_they_differ() {
        let found = Identity {
            key: "b".to_owned(),
            place: "namespace b".to_owned(),
        };
        let words = other("temporal", "namespace a", &found).to_string();
        assert!(
            words.contains("namespace a") && words.contains("namespace b"),
            "{words}"
        );
    }
}
