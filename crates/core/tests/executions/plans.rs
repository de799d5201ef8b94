//! The plans of the hot statements: with much in the tables, each goes by the indexes that its header names.

use sqlx::{AssertSqlSafe, PgConnection};

use crate::common::{NOOP, Testbed};

/// Ten thousand workspaces, most of them full, fifty thousand waiting items, ten thousand executions under way, fifty thousand ended ones.
const CROWD: &str = "
    insert into stationmaster.workspaces (name, plan) select 'w' || n, 'PRO' from generate_series(1, 10000) n;
    update stationmaster_internal.workspace_capacity set ready = true, virtual_time = random() * 1000,
        active = case when random() < 0.05 then 1 else max_concurrent end;
    with w as (select id, row_number() over () as n from stationmaster.workspaces limit 2000)
    insert into stationmaster_internal.queue_pending
        (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, stage, run_at, waits_for, unseen)
    select gen_random_uuid(), s, -(s % 3), w.id, w.id, w.id, case when s % 50 = 0 then 'later' else 'ready' end,
           case when s % 50 = 0 then now() + s * interval '1 s' end, case when s % 50 = 0 then 'schedule' end, s > 40000
    from generate_series(1, 50000) s join w on w.n = s % 2000 + 1;
    insert into stationmaster_internal.executions_active
        (execution_id, item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, state,
         holder, token, lease_until, engine, engine_id, attempts, recoveries, claimed_at)
    select gen_random_uuid(), gen_random_uuid(), row_number() over (), 0, id, id, id,
           case when random() < 0.1 then 'STARTING' else 'RUNNING' end, gen_random_uuid(), 1,
           case when random() < 0.1 then now() + interval '1 hour' end, 'embedded', 1, 0, 0, now()
    from stationmaster.workspaces;
    insert into stationmaster_internal.executions_finished
        (execution_id, item_id, workspace_id, workflow_definition_id, item_status, status, attempts, recoveries, finished_at,
         finished_by)
    select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'DISPATCHED', 'COMPLETED', 0, 0,
           now() - n * interval '1 s', 'x'
    from generate_series(1, 50000) n;
    insert into stationmaster_internal.queue_hints (workspace_id, rank, seq)
    select workspace_id, 0, row_number() over () from stationmaster_internal.workspace_capacity limit 5000;
    analyze stationmaster.workspaces, stationmaster_internal.workspace_capacity, stationmaster_internal.queue_pending,
            stationmaster_internal.executions_active, stationmaster_internal.executions_finished, stationmaster_internal.queue_hints";

/// The tables that a hot statement must not read from end to end.
const LARGE: [&str; 5] = [
    "queue_pending",
    "executions_active",
    "executions_finished",
    "workspace_capacity",
    "queue_items",
];

struct Hot {
    name: &'static str,
    statement: &'static str,
    /// Values for the parameters, as SQL.
    values: &'static str,
    /// Indexes that must be used.
    indexes: &'static [&'static str],
}

const NOBODY: &str = "'00000000-0000-0000-0000-000000000000'";

const HOT: &[Hot] = &[
    Hot {
        name: "capacity/lock_eligible",
        statement: include_str!("../../sql/capacity/lock_eligible.sql"),
        values: "0, 500, 1",
        indexes: &["workspace_capacity_eligible"],
    },
    Hot {
        name: "executions/admit",
        statement: include_str!("../../sql/executions/admit.sql"),
        values: "array[NOBODY]::uuid[], array[5], NOBODY, 30, 1, 'embedded', 1",
        indexes: &["queue_pending_in_line", "workspace_capacity_pkey"],
    },
    Hot {
        name: "executions/finish",
        statement: include_str!("../../sql/executions/finish.sql"),
        values: "array[NOBODY]::uuid[], array[1], array['DISPATCHED'], array['COMPLETED'], array[null]::text[],
                 array[null]::text[], array[null]::text[], array[null]::text[], array[0], array[null]::text[], 'x', 0, null, null, null, array[null]::timestamptz[], array[null]::text[]",
        indexes: &["executions_active_pkey", "workspace_capacity_pkey"],
    },
    Hot {
        name: "executions/release",
        statement: include_str!("../../sql/executions/release.sql"),
        values: "array[NOBODY]::uuid[], array[1], array[0], array[0], array[0], array['x'], array['x'], 'x', 0, array[NOBODY]::uuid[]",
        indexes: &["executions_active_pkey", "workspace_capacity_pkey"],
    },
    Hot {
        name: "executions/settle_running",
        statement: include_str!("../../sql/executions/settle_running.sql"),
        values: "array[NOBODY]::uuid[], array[1], array['x'], array[NOBODY]::uuid[]",
        indexes: &["executions_active_pkey"],
    },
    Hot {
        name: "executions/renew",
        statement: include_str!("../../sql/executions/renew.sql"),
        values: "array[NOBODY]::uuid[], array[1], 30",
        indexes: &["executions_active_pkey"],
    },
    Hot {
        name: "executions/look",
        statement: include_str!("../../sql/executions/look.sql"),
        values: "0",
        indexes: &[
            "workspace_capacity_eligible",
            "queue_pending_later",
            "queue_pending_unseen",
            "queue_hints_pkey",
        ],
    },
    Hot {
        name: "executions/promote_due",
        statement: include_str!("../../sql/executions/promote_due.sql"),
        values: "1000",
        indexes: &["queue_pending_later", "queue_pending_pkey"],
    },
    Hot {
        name: "capacity/absorb_hints",
        statement: include_str!("../../sql/capacity/absorb_hints.sql"),
        values: "0, 2000, 0",
        indexes: &[
            "queue_hints_pkey",
            "queue_pending_unseen",
            "workspace_capacity_pkey",
        ],
    },
    Hot {
        name: "operate/set_priority",
        statement: include_str!("../../sql/operate/set_priority.sql"),
        values: "NOBODY, 1, 'x', null",
        indexes: &["queue_pending_pkey"],
    },
    Hot {
        name: "operate/retry",
        statement: include_str!("../../sql/operate/retry.sql"),
        values: "array[NOBODY]::uuid[], 'x'",
        indexes: &["executions_finished_items_badly"],
    },
];

/// The plan of a statement: for these values, or for any, by the session's `plan_cache_mode`.
async fn plan_of(connection: &mut PgConnection, statement: &str, values: &str) -> String {
    let values = if values.is_empty() {
        String::new()
    } else {
        format!("({values})")
    };
    sqlx::raw_sql(AssertSqlSafe(format!("prepare hot as {statement}")))
        .execute(&mut *connection)
        .await
        .unwrap();
    let explain = format!("explain (costs off) execute hot{values}");
    let plan = sqlx::raw_sql(AssertSqlSafe(explain))
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    sqlx::raw_sql("deallocate hot")
        .execute(&mut *connection)
        .await
        .unwrap();
    plan.iter()
        .map(|row| sqlx::Row::get::<String, _>(row, 0))
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn the_hot_statements_use_the_indexes_that_their_headers_name() {
    let testbed = Testbed::new().await;
    testbed.run(CROWD).await;
    let mut connection = testbed.connection().await;
    sqlx::raw_sql("set plan_cache_mode = force_generic_plan")
        .execute(&mut connection)
        .await
        .unwrap();
    let mut complaints = Vec::new();
    for hot in HOT {
        let values = hot.values.replace("NOBODY", NOBODY);
        // As a pooled connection ends up with.
        let plan = plan_of(&mut connection, hot.statement, &values).await;
        for index in hot.indexes {
            if !plan.contains(index) {
                complaints.push(format!("{} does not use {index}:\n{plan}", hot.name));
            }
        }
        complaints.extend(read_whole(hot.name, &plan, &LARGE));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

/// A complaint for each of the tables that the plan reads from end to end.
fn read_whole(name: &str, plan: &str, tables: &[&str]) -> Vec<String> {
    let reads = |table: &&&str| plan.contains(&format!("Seq Scan on {table}"));
    let complain = |table: &&str| format!("{name} reads all of {table}:\n{plan}");
    tables.iter().filter(reads).map(complain).collect()
}

/// A bulk operation goes through thousands of pages. What a page costs must not grow with what there is.
#[tokio::test]
async fn a_page_of_a_bulk_operation_reads_no_table_from_end_to_end() {
    const PAGE: i64 = 1_000;
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let fill = format!(
        "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id)
         select '{workspace}', '{definition}' from generate_series(1, 30000);
         insert into stationmaster_internal.executions_finished
             (execution_id, item_id, workspace_id, workflow_definition_id, item_status, status, attempts, recoveries, finished_at, finished_by)
         select id, id, workspace_id, workflow_definition_id, 'DISPATCHED', 'FAILED', 0, 0, now(), 'x' from stationmaster_internal.queue_items;
         analyze stationmaster_internal.queue_items, stationmaster_internal.queue_pending, stationmaster_internal.executions_finished"
    );
    testbed.run(&fill).await;
    let page = format!(
        "select array(select id from stationmaster_internal.queue_items order by id limit {PAGE})::text"
    );
    let items: String = sqlx::query_scalar(AssertSqlSafe(page))
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    let mut connection = testbed.connection().await;
    sqlx::raw_sql("set plan_cache_mode = force_custom_plan")
        .execute(&mut connection)
        .await
        .unwrap();
    let before = "null, null, null, null, now() + interval '1 hour'";
    let statements = [
        (
            "operate/cancellable",
            include_str!("../../sql/operate/cancellable.sql"),
            format!("{before}, {NOBODY}, {PAGE}"),
        ),
        (
            "operate/matching",
            include_str!("../../sql/operate/matching.sql"),
            format!("{before}, null, {NOBODY}, {PAGE}, null"),
        ),
        (
            "operate/set_priorities",
            include_str!("../../sql/operate/set_priorities.sql"),
            format!("'{items}', 7, 'x'"),
        ),
        (
            "operate/cancel_some",
            include_str!("../../sql/operate/cancel_some.sql"),
            format!("'{items}', 'x', 'x'"),
        ),
        (
            "operate/retry",
            include_str!("../../sql/operate/retry.sql"),
            format!("'{items}', 'x'"),
        ),
    ];
    let mut complaints = Vec::new();
    for (name, statement, values) in statements {
        let plan = plan_of(&mut connection, statement, &values).await;
        let plan = plan.replace(&items, "…");
        complaints.extend(read_whole(
            name,
            &plan,
            &["queue_items", "queue_pending", "executions_finished"],
        ));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

/// Failures with the same trouble are one group, whatever ids, times, addresses and numbers they name.
#[tokio::test]
async fn what_differs_from_one_time_to_the_next_is_taken_out_of_a_message() {
    let testbed = Testbed::new().await;
    let messages = [
        (
            "Connection to 10.0.0.7:5432 refused after 1,234.5 ms",
            "connection to # refused after # ms",
        ),
        (
            "item 01a1e3c0-d745-abcd-aaaa-aacdffffaadf is gone",
            "item # is gone",
        ),
        (
            "request cdf7651916cd43dd8448eb211c80319c at 0x7ffde3",
            "request # at #",
        ),
        ("late since 2026-11-16T09:48:51.743Z.", "late since #."),
        (
            "no row in result set (attempt 3)",
            "no row in result set (attempt #)",
        ),
        ("bad face", "bad face"),
    ];
    for (message, folded) in messages {
        let query = "select stationmaster_internal.fold_message($1)";
        let got: String = sqlx::query_scalar(query)
            .bind(message)
            .fetch_one(testbed.pool())
            .await
            .unwrap();
        assert_eq!(got, folded, "{message}");
    }
}
