//! The operator: carries out operations, one call after the other. One server at a time, as a duty.
//!
//! Of several operations each gets a call in turn, so a long one does not hold up a short one. A call is written down with where the next one goes
//! on; whoever takes the duty over goes on there. What a lost server had changed and not written down does not match any more, so nothing
//! is done twice, and a look tells how much it was; and a call that comes late finds another step on record, and is counted as a stale write.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use stationmaster_wire::{OperationKind, OperationStatus};
use uuid::Uuid;

use super::{Error, Request, end};
use crate::db::{self, Database, Read as _, statement};
use crate::duty;
use crate::id::ServerId;
use crate::listen::Bells;
use crate::observe::Metrics;
use crate::presence::Presence;
use crate::session::Scope;
use crate::surroundings::Surroundings;
use crate::task::{Next, Pass, chain};

const DUTY: &str = "operations";
/// Without anything to do; a notification comes sooner.
const REST: Duration = Duration::from_secs(30);
/// How soon to look again whether whoever works on an operation is still there.
const ELSEWHERE: Duration = Duration::from_secs(2);
/// Walks over everything at most: what changed hands while it was walked past is met by the next one.
const WALKS: i32 = 5;

/// See the module.
pub(crate) struct Operator {
    database: Database,
    presence: Presence,
    metrics: Arc<Metrics>,
    bells: Bells,
}

/// An operation that is to go on.
#[derive(Debug, sqlx::FromRow)]
struct Open {
    id: Uuid,
    kind: OperationKind,
    request: Value,
    workspaces: Option<Vec<Uuid>>,
    created_by: String,
    total: i64,
    more: bool,
    step: i64,
    next: Option<String>,
    server_id: Option<ServerId>,
}

impl Operator {
    pub(crate) fn new(around: &Surroundings) -> Self {
        Self {
            database: around.database.clone(),
            presence: around.presence.clone(),
            metrics: Arc::clone(&around.metrics),
            bells: around.bells.clone(),
        }
    }

    /// One call, and a note of it.
    async fn go_on(&self, mut open: Open) -> Result<(), db::Error> {
        if open.server_id != Some(self.presence.id()) && !self.take(&mut open).await? {
            return Ok(());
        }
        let error = match self.call(&open).await {
            Ok((changed, next)) => return self.note(&open, changed, next).await,
            Err(error) => error,
        };
        let words = match error.of_database() {
            // It is nobody's fault, and the same call may succeed later.
            Ok(error) if may_pass(&error) => return Err(error),
            Ok(error) => chain(&error),
            Err(error) => chain(&error),
        };
        self.fail(&open, &words).await
    }

    /// Begins with an operation, or goes on with one of a server that is gone. What that one had changed and not written down does not match any
    /// more: so a look tells how much it was. Answers whether nobody else was faster.
    async fn take(&self, open: &mut Open) -> Result<bool, db::Error> {
        let done = match open.server_id {
            Some(_) if !open.more => self.left(open).await?.map(|left| open.total - left),
            _ => None,
        };
        let query = sqlx::query_scalar::<_, i64>(statement!("operations/take"))
            .bind(open.id)
            .bind(open.step)
            .bind(self.presence.id())
            .bind(done.unwrap_or_default());
        let Some(step) = query.maybe(&self.database).await? else {
            self.metrics.stale_write("operation");
            return Ok(false);
        };
        open.step = step;
        Ok(true)
    }

    /// How many still match; none when nobody can tell.
    async fn left(&self, open: &Open) -> Result<Option<i64>, db::Error> {
        let Ok(mut look) = Request::read(open.kind, open.request.clone()) else {
            return Ok(None);
        };
        *look.fields().dry_run = true;
        match look.call(&self.behalf(open), &open.created_by).await {
            Ok(answer) if !answer.more => Ok(i64::try_from(answer.items).ok()),
            Ok(_) => Ok(None),
            Err(error) => error.of_database().map_or(Ok(None), Err),
        }
    }

    /// The database as whoever asked may see it.
    fn behalf(&self, open: &Open) -> Database {
        let scope = Scope::from(open.workspaces.clone());
        self.database.on_behalf(&open.created_by, scope)
    }

    /// What has rested longest.
    async fn open(&self) -> Result<Option<Open>, db::Error> {
        sqlx::query_as(statement!("operations/open"))
            .maybe(&self.database)
            .await
    }

    async fn call(&self, open: &Open) -> Result<(u64, Option<String>), Error> {
        let mut request = Request::read(open.kind, open.request.clone())?;
        request.fields().after.clone_from(&open.next);
        let answer = request.call(&self.behalf(open), &open.created_by).await?;
        if request.brings_signals() {
            self.bells.signals.ring();
        }
        Ok((answer.items, answer.next.filter(|_| answer.more)))
    }

    async fn note(&self, open: &Open, changed: u64, next: Option<String>) -> Result<(), db::Error> {
        let query = sqlx::query_as::<_, (Option<OperationStatus>, bool)>(statement!("operations/advance"))
            .bind(open.id)
            .bind(open.step)
            .bind(self.presence.id())
            .bind(i64::try_from(changed).unwrap_or(i64::MAX))
            .bind(next)
            .bind(WALKS);
        let (status, is_stale) = query.one(&self.database).await?;
        self.metrics.operated(changed);
        if is_stale {
            self.metrics.stale_write("operation");
        }
        if let Some(status) = status.filter(|status| status.has_ended()) {
            tracing::info!(operation = %open.id, kind = %open.kind, "Operation completed");
            self.metrics.operation_ended(status);
        }
        Ok(())
    }

    async fn fail(&self, open: &Open, words: &str) -> Result<(), db::Error> {
        tracing::error!(operation = %open.id, kind = %open.kind, error = words, "Operation failed");
        if end(
            &self.database,
            open.id,
            OperationStatus::Failed,
            None,
            Some(words),
        )
        .await?
        {
            self.metrics.operation_ended(OperationStatus::Failed);
        }
        Ok(())
    }
}

/// May the same call succeed later? Not when it took the database too long.
fn may_pass(error: &db::Error) -> bool {
    (error.is_away() || error.is_conflict()) && error.code().as_deref() != Some("57014")
}

impl Pass for Operator {
    fn name(&self) -> &'static str {
        "operations"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if self.open().await?.is_none() {
            return Ok(Next::After(REST));
        }
        if duty::hold(&self.database, &self.presence, DUTY).await?.is_none() {
            return Ok(Next::After(ELSEWHERE));
        }
        // Under the duty: whoever had it may have gone on meanwhile.
        if let Some(open) = self.open().await? {
            self.go_on(open).await?;
        }
        Ok(Next::Now)
    }
}
