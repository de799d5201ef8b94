//! Does a pooler lie between that hands out transactions, or has each connection a session of its own? Nobody tells; but whoever is asked twice,
//! on two connections, answers from the same backend or not. For whoever looks after the database; it reads only, and locks nothing.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use crate::db::{self, Database, within};

/// What to set where a pooler lies between that hands out transactions.
pub const BEHIND_A_POOLER: &str = "A pooler lies between that hands out transactions: set database_direct_url to an address that leads past it, \
     and database_prepared to false unless it keeps prepared statements (PgBouncer from 1.21 on, with max_prepared_statements)";

/// Times that each of two connections is asked. A pooler gives out whoever is free, so once is nearly always enough.
const ASKED: usize = 3;

/// What a connection leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// A session that is nobody else's for as long as the connection lasts.
    Own,
    /// Another session for each transaction.
    Shared {
        /// Is what was prepared in one transaction there in the next?
        prepared: bool,
    },
}

/// What the connections lead to by which the work is done.
pub async fn sessions_of_work(database: &Database) -> Result<Sessions, db::Error> {
    let options = database.pool().connect_options();
    // What a session keeps is what is asked about, so it is told to keep something.
    look((*options).clone().statement_cache_capacity(10)).await
}

/// What the connections lead to that need a session of their own: notifications, the watch, migrations.
pub async fn sessions_of_the_direct_way(database: &Database) -> Result<Sessions, db::Error> {
    look(database.options()).await
}

/// For whoever prepares statements and has no other way to see that they do not survive: by the name of one, somebody else's would be run.
pub async fn refuse_lost_statements(database: &Database) -> Result<(), db::Error> {
    match sessions_of_work(database).await? {
        Sessions::Shared { prepared: false } => Err(db::Error::LostStatements),
        Sessions::Shared { prepared: true } | Sessions::Own => Ok(()),
    }
}

async fn look(options: PgConnectOptions) -> Result<Sessions, db::Error> {
    let (mut one, mut other) = within(async {
        let one = options.connect().await?;
        Ok::<_, sqlx::Error>((one, options.connect().await?))
    })
    .await?;
    let found = within(async { compare(&mut one, &mut other).await }).await;
    // What they were opened for is answered.
    let _ = (one.close().await, other.close().await);
    found
}

async fn compare(one: &mut PgConnection, other: &mut PgConnection) -> Result<Sessions, sqlx::Error> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ASKED {
        ours.push(backend(one).await?);
        theirs.push(backend(other).await?);
    }
    let moved = |seen: &[i32]| seen.iter().any(|backend| *backend != seen[0]);
    let shared = moved(&ours) || moved(&theirs) || ours.iter().any(|backend| theirs.contains(backend));
    if !shared {
        return Ok(Sessions::Own);
    }
    for _ in 0..ASKED {
        for (connection, statement, answer) in [(&mut *one, SAME, OURS), (&mut *other, NEXT, OURS + 1)] {
            if !keeps_prepared(connection, statement, answer).await? {
                return Ok(Sessions::Shared { prepared: false });
            }
        }
    }
    Ok(Sessions::Shared { prepared: true })
}

/// Who answers, asked without anything being prepared.
async fn backend(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    use sqlx::{Executor as _, Row as _};
    let row = connection
        .fetch_one(sqlx::raw_sql("select pg_backend_pid()"))
        .await?;
    row.try_get(0)
}

/// What two connections ask. The driver gives both statements the same name, so that whoever gets the other's session gets the other's answer.
const SAME: &str = "select $1::integer";
const NEXT: &str = "select $1::integer + 1";
const OURS: i32 = 1_732_050_808;

/// Prepares a statement under a name, the first time, and asks for it by that name from then on. Where sessions change it is not there, or somebody
/// else has one of this name: what comes back then is not what was asked for, and the driver may even panic over it.
async fn keeps_prepared(
    connection: &mut PgConnection,
    statement: &'static str,
    expected: i32,
) -> Result<bool, sqlx::Error> {
    let asked = sqlx::query_scalar::<_, i32>(statement)
        .bind(OURS)
        .fetch_one(connection);
    match AssertUnwindSafe(asked).catch_unwind().await {
        Ok(Ok(answer)) => Ok(answer == expected),
        Ok(Err(error)) if is_of_a_pooler(&error) || is_of_another_statement(&error) => Ok(false),
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// The statement that somebody else has under this name takes other values than ours, which is a violation of the protocol, or answers with others.
fn is_of_another_statement(error: &sqlx::Error) -> bool {
    use sqlx::Error::{ColumnDecode, ColumnIndexOutOfBounds, ColumnNotFound, Decode, RowNotFound};
    match error {
        ColumnDecode { .. } | ColumnIndexOutOfBounds { .. } | ColumnNotFound(_) | Decode(_) | RowNotFound => {
            true
        }
        error => {
            let code = error
                .as_database_error()
                .and_then(sqlx::error::DatabaseError::code);
            code.is_some_and(|code| code == "08P01")
        }
    }
}

impl db::Error {
    /// Does it tell of a pooler that hands out transactions?
    #[must_use]
    pub fn is_of_a_pooler(&self) -> bool {
        match self {
            Self::Shared(error) => error.is_of_a_pooler(),
            Self::Sql(error) => is_of_a_pooler(error),
            Self::LostStatements => true,
            _ => false,
        }
    }
}

/// A parameter that only PostgreSQL itself takes, or a prepared statement of somebody else: a session that is not one.
fn is_of_a_pooler(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code = error.code();
    code.is_some_and(|code| ["42P05", "26000"].contains(&code.as_ref()))
        || error.message().starts_with("unsupported startup parameter")
}
