//! On whose behalf a statement runs: what it may see, and under whose name it is written down.
//!
//! A [`Database`] by itself is the program's own: it sees everything. A copy made by [`Database::on_behalf`] runs each
//! operation in a transaction that names an actor and the workspaces in scope, as the role behind which row-level security
//! stands. Where that role is missing the core's own statements and reads ask the scope all the same: [`Database::scope`] is
//! the one place that knows it, and no caller passes it along. All of it is local to the transaction, so it works through a pooler that hands out transactions. The lanes
//! never act on anybody's behalf, so they pay nothing for it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::{Query, QueryAs, QueryScalar};
use sqlx::{FromRow, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::db::{self, Database, statement, within};
use crate::id::WorkspaceId;

/// The role that requests run as.
pub const ROLE: &str = "stationmaster_api";
/// A statement that runs for longer is given up by PostgreSQL itself, also when nobody waits for it any more.
const STATEMENT_TIMEOUT: &str = "19s";

/// Which workspaces somebody may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of them, also those that come later.
    All,
    /// These.
    Only(Vec<WorkspaceId>),
}

impl Scope {
    /// May this workspace be seen?
    #[must_use]
    pub fn holds(&self, workspace: WorkspaceId) -> bool {
        match self {
            Self::All => true,
            Self::Only(workspaces) => workspaces.contains(&workspace),
        }
    }

    /// Is everything in the other scope in this one as well?
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Only(_), Self::All) => false,
            (Self::Only(mine), Self::Only(others)) => others.iter().all(|workspace| mine.contains(workspace)),
        }
    }

    /// The workspaces, when they are limited.
    #[must_use]
    pub fn limited(&self) -> Option<&[WorkspaceId]> {
        match self {
            Self::All => None,
            Self::Only(workspaces) => Some(workspaces),
        }
    }

    fn setting(&self) -> String {
        match self {
            Self::All => "*".to_owned(),
            Self::Only(workspaces) => {
                let ids: Vec<String> = workspaces.iter().map(ToString::to_string).collect();
                ids.join(",")
            }
        }
    }
}

impl From<Option<Vec<Uuid>>> for Scope {
    /// As a token tells it: none means all.
    fn from(workspaces: Option<Vec<Uuid>>) -> Self {
        workspaces.map_or(Self::All, |ids| {
            Self::Only(ids.into_iter().map(WorkspaceId).collect())
        })
    }
}

/// For whom.
#[derive(Debug)]
pub(crate) struct Behalf {
    actor: String,
    scope: Scope,
}

/// A connection for one operation: to be finished when it has succeeded; whatever else happens takes it back.
pub struct Session(Held);

enum Held {
    Own(PoolConnection<Postgres>),
    Transaction(Transaction<'static, Postgres>),
}

impl Session {
    /// Makes what was done last.
    pub async fn finish(self) -> Result<(), db::Error> {
        match self.0 {
            Held::Own(_) => Ok(()),
            Held::Transaction(transaction) => within(transaction.commit()).await,
        }
    }
}

impl Deref for Session {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match &self.0 {
            Held::Own(connection) => connection,
            Held::Transaction(transaction) => transaction,
        }
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match &mut self.0 {
            Held::Own(connection) => connection,
            Held::Transaction(transaction) => transaction,
        }
    }
}

impl Database {
    /// The same database, acting for somebody.
    #[must_use]
    pub fn on_behalf(&self, actor: &str, scope: Scope) -> Self {
        let behalf = Behalf {
            // PostgreSQL cannot keep the zero byte.
            actor: actor.replace('\0', ""),
            scope,
        };
        let mut database = self.clone();
        database.pool = self.requests.clone();
        database.behalf = Some(Arc::new(behalf));
        database
    }

    /// The workspaces in scope of whoever this acts for; the program's own has all of them.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        const ALL: &Scope = &Scope::All;
        self.behalf.as_ref().map_or(ALL, |behalf| &behalf.scope)
    }

    /// The workspaces that a list is limited to: the one asked for, if it is in scope, or those in scope; `None`: no limit.
    pub(crate) fn among(&self, asked: Option<WorkspaceId>) -> Option<Vec<WorkspaceId>> {
        match asked {
            Some(workspace) => Some(Vec::from_iter(self.scope().holds(workspace).then_some(workspace))),
            None => self.scope().limited().map(<[_]>::to_vec),
        }
    }

    /// A connection on which to carry out one operation.
    pub async fn session(&self) -> Result<Session, db::Error> {
        // In boxes, so that nobody carries the room along that a connection needs to be had.
        match &self.behalf {
            // A statement is prepared in one step and carried out in the next, which may be in another session.
            None if self.unprepared => {
                let transaction = within(Box::pin(self.begin())).await?;
                Ok(Session(Held::Transaction(transaction)))
            }
            None => Ok(Session(Held::Own(within(Box::pin(self.pool.acquire())).await?))),
            Some(behalf) => Box::pin(self.session_for(behalf)).await,
        }
    }

    async fn session_for(&self, behalf: &Behalf) -> Result<Session, db::Error> {
        let mut transaction = within(self.begin()).await?;
        let role = self.wall.load(Ordering::Relaxed).then_some(ROLE);
        let act = sqlx::query(statement!("access/act_for"))
            .bind(role)
            .bind(&behalf.actor)
            .bind(behalf.scope.setting())
            .bind(STATEMENT_TIMEOUT);
        within(act.execute(&mut *transaction)).await?;
        Ok(Session(Held::Transaction(transaction)))
    }

    /// A transaction for an operation of several steps.
    pub(crate) async fn transaction(&self) -> Result<Session, db::Error> {
        match self.behalf {
            Some(_) => self.session().await,
            None => Ok(Session(Held::Transaction(within(self.begin()).await?))),
        }
    }

    /// Tries whether requests can run behind row-level security, and from now on lets them if so. Otherwise the reason.
    pub async fn raise_wall(&self) -> Result<Wall, db::Error> {
        let mut transaction = within(self.begin()).await?;
        let trial = within(
            sqlx::query(statement!("access/act_for"))
                .bind(ROLE)
                .bind("trial")
                .bind("")
                .bind(STATEMENT_TIMEOUT)
                .execute(&mut *transaction),
        )
        .await;
        let seen = match trial {
            Ok(_) => {
                let query = "select current_user = $1 and not exists (select from stationmaster.workspaces)";
                within(
                    sqlx::query_scalar::<_, bool>(query)
                        .bind(ROLE)
                        .fetch_one(&mut *transaction),
                )
                .await
            }
            Err(error) => Err(error),
        };
        let wall = match seen {
            Ok(true) => Wall::Stands,
            Ok(false) => Wall::Missing("rows are seen that should be hidden".to_owned()),
            // No such role, not a member of it, no rights on our tables: PostgreSQL's own words say which.
            Err(error) if error.code().is_some() && !error.is_away() => Wall::Missing(error.message()),
            Err(error) => return Err(error),
        };
        self.wall.store(wall == Wall::Stands, Ordering::Relaxed);
        Ok(wall)
    }
}

/// A statement that answers rows, whether they are read as structs or as single values, as an operation of its own.
pub(crate) trait Read: Sized + Send {
    /// What a row is read as.
    type Row: Send;

    /// All of its rows.
    fn all(self, database: &Database) -> impl Future<Output = Result<Vec<Self::Row>, db::Error>> + Send;

    /// Its row, if it has one.
    fn maybe(self, database: &Database) -> impl Future<Output = Result<Option<Self::Row>, db::Error>> + Send;

    /// Its row, which is always there.
    fn one(self, database: &Database) -> impl Future<Output = Result<Self::Row, db::Error>> + Send {
        async {
            let row = self.maybe(database).await?;
            row.ok_or(db::Error::Sql(sqlx::Error::RowNotFound))
        }
    }
}

macro_rules! read {
    ($($query:ident => $columns:ty),+) => {$(
        impl<R: Send + Unpin> Read for $query<'_, Postgres, R, PgArguments>
        where
            $columns: for<'r> FromRow<'r, PgRow>,
        {
            type Row = R;

            async fn all(self, database: &Database) -> Result<Vec<R>, db::Error> {
                let mut session = database.session().await?;
                let rows = within(self.fetch_all(&mut *session)).await?;
                session.finish().await?;
                Ok(rows)
            }

            async fn maybe(self, database: &Database) -> Result<Option<R>, db::Error> {
                let mut session = database.session().await?;
                let row = within(self.fetch_optional(&mut *session)).await?;
                session.finish().await?;
                Ok(row)
            }
        }
    )+};
}
read!(QueryAs => R, QueryScalar => (R,));

/// A statement that answers nothing, as an operation of its own.
pub(crate) trait Write {
    /// Carries it out. Answers how many rows it has written.
    fn run(self, database: &Database) -> impl Future<Output = Result<u64, db::Error>> + Send;
}

impl Write for Query<'_, Postgres, PgArguments> {
    async fn run(self, database: &Database) -> Result<u64, db::Error> {
        let mut session = database.session().await?;
        let done = within(self.execute(&mut *session)).await?;
        session.finish().await?;
        Ok(done.rows_affected())
    }
}

/// Does row-level security stand behind the API's own checks?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wall {
    /// It does.
    Stands,
    /// It does not, for this reason.
    Missing(String),
}
