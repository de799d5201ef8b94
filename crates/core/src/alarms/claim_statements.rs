//! The statements of a claim on a plain connection, for benchmarks that time them without a server around.

use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::db::{Error, statement};
use crate::id::{AlarmId, ServerId};

/// One claim of at most `batch` occurrences of alarms for once: the same statements, in the same order, as a server's.
/// Answers how many it took.
pub async fn claim_by_hand(connection: &mut PgConnection, batch: usize) -> Result<usize, Error> {
    let limit = i64::try_from(batch).unwrap_or(i64::MAX);
    let mut transaction = connection.begin().await?;
    let due = sqlx::query(statement!("alarms/lock_due"))
        .bind(f64::NEG_INFINITY)
        .bind(limit)
        .fetch_all(&mut *transaction)
        .await?;
    let column = |name: &str| -> Result<Vec<jiff_sqlx::Timestamp>, sqlx::Error> {
        due.iter().map(|row| sqlx::Row::try_get(row, name)).collect()
    };
    let alarms: Vec<AlarmId> = due
        .iter()
        .map(|row| sqlx::Row::try_get::<Uuid, _>(row, "alarm_id").map(AlarmId))
        .collect::<Result<_, _>>()?;
    let (nominal, due_at) = (column("next_fire_at")?, column("next_due_at")?);
    let nothing: Vec<Option<jiff_sqlx::Timestamp>> = vec![None; due.len()];
    let no_words: Vec<Option<String>> = vec![None; due.len()];
    let rows = sqlx::query(statement!("alarms/claim"))
        .bind(&alarms)
        .bind(&nothing)
        .bind(&nothing)
        .bind(&nominal)
        .bind(vec![false; due.len()])
        .bind(&no_words)
        .bind(vec!["active"; due.len()])
        .bind(&alarms)
        .bind(&nominal)
        .bind(&due_at)
        .bind(vec!["leased"; due.len()])
        .bind(&no_words)
        .bind(ServerId::new())
        .bind(120_f64)
        .bind(f64::NEG_INFINITY)
        .bind(1_i64)
        .bind(&no_words)
        .fetch_all(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(rows.len())
}
