//! With nothing to do a server costs next to nothing: every loop says when it next has something to do.

use std::time::Duration;

use crate::support::{Launch, Temporal, TestDatabase};

/// Transactions of an idle server in a second. PostgreSQL counts what is prepared as well; of statements there are about four.
const TRANSACTIONS: i64 = 10;
const WATCHED: Duration = Duration::from_secs(10);
/// How often it may be watched: each connection prepares each statement once, which PostgreSQL counts too, and on a busy machine
/// connections are opened late.
const TIMES: usize = 6;

/// Transactions so far, by PostgreSQL's own count; a statement alone is one.
async fn transactions(database: &TestDatabase) -> i64 {
    database
        .number("select xact_commit + xact_rollback from pg_stat_database where datname = current_database()")
        .await
}

/// Rows written so far, to whatever table.
async fn rows_written(database: &TestDatabase) -> i64 {
    database
        .number("select sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint from pg_stat_user_tables")
        .await
}

async fn assert_costs_next_to_nothing(database: &TestDatabase, rows_in_a_second: i64) {
    // Making the tables leaves much to clean, and PostgreSQL's cleaning is counted as well.
    sqlx::query("vacuum analyze")
        .execute(&database.pool)
        .await
        .unwrap();
    // What a start brings with it is over, and every task has found often enough that there is nothing to do.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let seconds = i64::try_from(WATCHED.as_secs()).unwrap();
    let mut seen = Vec::new();
    for _ in 0..TIMES {
        let before = (transactions(database).await, rows_written(database).await);
        tokio::time::sleep(WATCHED).await;
        let after = (transactions(database).await, rows_written(database).await);
        let (statements, rows) = (after.0 - before.0, after.1 - before.1);
        println!("in {seconds} s: {statements} transactions, {rows} rows written");
        if statements <= TRANSACTIONS * seconds && rows <= rows_in_a_second * seconds {
            return;
        }
        seen.push((statements, rows));
    }
    panic!("transactions and rows written in {seconds} s, again and again: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_costs_the_database_next_to_nothing() {
    let database = TestDatabase::new().await;
    let _server = Launch::on(&database).start_ready().await;
    assert_costs_next_to_nothing(&database, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_on_temporal_costs_the_database_next_to_nothing() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let _server = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .start_ready()
        .await;
    assert_costs_next_to_nothing(&database, 2).await;
}
