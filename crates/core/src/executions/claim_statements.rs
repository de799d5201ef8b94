//! The statements of a claim on a plain connection, for benchmarks that time them without a server around.

use sqlx::{Connection as _, PgConnection};

use crate::capacity::{Demand, share};
use crate::db::{Error, statement};
use crate::id::{ServerId, Token, WorkspaceId};

/// One claim of at most `batch` items: the same statements, in the same order, as a server's. Answers how many it took.
pub async fn claim_by_hand(connection: &mut PgConnection, batch: usize) -> Result<usize, Error> {
    let mut transaction = connection.begin().await?;
    let (.., token): (Option<i64>, i64, i64, Token) = sqlx::query_as(statement!("capacity/absorb_hints"))
        .bind(0_i64)
        .bind(2_000_i64)
        .bind(0_f64)
        .fetch_one(&mut *transaction)
        .await?;
    let rooms: Vec<(WorkspaceId, i32, f64, f64)> = sqlx::query_as(statement!("capacity/lock_eligible"))
        .bind(f64::NEG_INFINITY)
        .bind(i64::try_from(batch).unwrap_or(i64::MAX))
        .fetch_all(&mut *transaction)
        .await?;
    let demands: Vec<Demand> = rooms
        .iter()
        .map(|(_, free, weight, virtual_time)| Demand {
            free: u32::try_from(*free).unwrap_or_default(),
            weight: *weight,
            virtual_time: *virtual_time,
        })
        .collect();
    let shares = share(u32::try_from(batch).unwrap_or(u32::MAX), &demands);
    let takes: Vec<i32> = shares
        .iter()
        .map(|share| i32::try_from(*share).unwrap_or(i32::MAX))
        .collect();
    let rows = sqlx::query(statement!("executions/admit"))
        .bind(rooms.iter().map(|room| room.0).collect::<Vec<_>>())
        .bind(takes)
        .bind(ServerId::new())
        .bind(30_f64)
        .bind(token)
        .bind("embedded")
        .fetch_all(&mut *transaction)
        .await?;
    transaction.commit().await?;
    // One row says how each workspace stands, the rest are admissions.
    Ok(rows.len() - rooms.len())
}
