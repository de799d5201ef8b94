//! The plans of the statements that run for every batch of signals: with much in the tables, each goes by the indexes that its
//! header names.

use sqlx::AssertSqlSafe;

use crate::common::{NOOP, Testbed};

/// Forty thousand signals that were settled, twenty thousand that wait for twenty dispatchers.
const CROWD: &str = "
    insert into stationmaster_internal.signals_inbox (id, project, task_queue, name)
    select 's' || n, 'shop', 'q' || n % 20, 'paid' from generate_series(1, 60000) n;
    insert into stationmaster_internal.queue_items (workspace_id, workflow_definition_id, workflow_definition_version_id, idempotency_key)
    select d.workspace_id, d.id, d.current_version_id, 'signal:' || n
    from generate_series(1, 40000) n, stationmaster.workflow_definitions d;
    insert into stationmaster_internal.signals_settled (signal_key, dispatcher_id, status, epoch, settled_by, settled_at, replays)
    select stationmaster_internal.signal_key('s' || n, 'shop'), 'dispatcher-shop-q' || n % 20, 'ROUTED', 1, 'x', now(), 0 from generate_series(1, 40000) n;
    delete from stationmaster_internal.signals_pending p using stationmaster_internal.signals_settled s where s.signal_key = p.signal_key;
    analyze stationmaster_internal.signals_inbox, stationmaster_internal.signals_pending, stationmaster_internal.signals_settled, stationmaster_internal.queue_items";

const LARGE: [&str; 4] = [
    "signals_inbox",
    "signals_pending",
    "signals_settled",
    "queue_items",
];

/// Name, statement, values for the parameters, indexes that must be used.
const HOT: [(&str, &str, &str, &[&str]); 6] = [
    (
        "signals/load",
        include_str!("../../sql/signals/load.sql"),
        "'dispatcher-shop-q1', 500",
        &["signals_pending_by_dispatcher", "signals_inbox_pkey"],
    ),
    (
        "signals/route",
        include_str!("../../sql/signals/route.sql"),
        "'dispatcher-shop-q1', 1, '00000000-0000-0000-0000-000000000000', array['s1'], array[null]::uuid[], array[null]::uuid[],
         array[0], array[null]::text[], array[null]::text[]",
        &["signals_pending_pkey", "queue_items_idempotency"],
    ),
    (
        "signals/waiting",
        include_str!("../../sql/signals/waiting.sql"),
        "array['dispatcher-shop-q1']",
        &["signals_pending_by_dispatcher"],
    ),
    (
        "signals/candidates",
        include_str!("../../sql/signals/candidates.sql"),
        "null, null, 1000000, 5000, null, null",
        &["signals_inbox_seq", "signals_inbox_by_project"],
    ),
    (
        "signals/named",
        include_str!("../../sql/signals/named.sql"),
        "'s1', null, null",
        &["signals_inbox_pkey"],
    ),
    (
        "signals/list",
        include_str!("../../sql/signals/list.sql"),
        "array[1], null, null, 'DEAD', 20, null",
        &["signals_inbox_seq", "signals_settled_pkey"],
    ),
];

#[tokio::test]
async fn the_statements_of_every_batch_use_the_indexes_that_their_headers_name() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.run(CROWD).await;
    let mut connection = testbed.connection().await;
    sqlx::raw_sql("set plan_cache_mode = force_generic_plan")
        .execute(&mut connection)
        .await
        .unwrap();
    let mut complaints = Vec::new();
    for (name, statement, values, indexes) in HOT {
        sqlx::raw_sql(AssertSqlSafe(format!("prepare hot as {statement}")))
            .execute(&mut connection)
            .await
            .unwrap();
        let explain = format!("explain (costs off) execute hot({values})");
        let plan = sqlx::raw_sql(AssertSqlSafe(explain))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        sqlx::raw_sql("deallocate hot")
            .execute(&mut connection)
            .await
            .unwrap();
        let lines: Vec<String> = plan.iter().map(|row| sqlx::Row::get(row, 0)).collect();
        let plan = lines.join("\n");
        for index in indexes.iter().filter(|index| !plan.contains(**index)) {
            complaints.push(format!("{name} does not use {index}:\n{plan}"));
        }
        for table in LARGE
            .iter()
            .filter(|table| plan.contains(&format!("Seq Scan on {table}")))
        {
            complaints.push(format!("{name} reads all of {table}:\n{plan}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}
