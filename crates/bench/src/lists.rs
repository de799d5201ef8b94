//! Rows for lists: a record of many executions, most of them well ended, some failed, a backlog beside them, spread over a
//! thousand workspaces of which one is large. Made by plain inserts, as fast as the database takes them.

use anyhow::Result;
use stationmaster_core::db::Database;
use uuid::Uuid;

/// Rows of one statement.
const BATCH: i64 = 50_000;
const WORKSPACES: i64 = 1000;

/// What was made.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// A workspace with a tenth of everything.
    pub large: Uuid,
    /// One of the others.
    pub small: Uuid,
}

/// Items that ended: one of ten of the large workspace, one of a hundred failed.
const ENDED: &str = "
    with w as (
        select array_agg(id order by name) as ids, (select array_agg(d.id order by n.name) from stationmaster.workflow_definitions d
               join stationmaster.workspaces n on n.id = d.workspace_id) as definitions
        from stationmaster.workspaces
    ), made as (
        insert into stationmaster_internal.queue_items
            (workspace_id, workflow_definition_id, workflow_definition_version_id, input, created_at)
        select w.ids[i], w.definitions[i], d.current_version_id, jsonb_build_object('order', n, 'note', md5(n::text)),
               now() - interval '7 days' * (1 - n::double precision / $3)
        from generate_series($1, $2) n
        cross join w
        cross join lateral (select (case when n % 10 = 0 then 1 else 2 + n % ($4 - 1) end)::integer as i) chosen
        join stationmaster.workflow_definitions d on d.id = w.definitions[i]
        returning id, workspace_id, workflow_definition_id, workflow_definition_version_id, created_at, seq
    )
    insert into stationmaster_internal.executions_finished
        (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status, status,
         engine, attempts, recoveries, claimed_at, dispatched_at, finished_at, finished_by, error)
    select stationmaster.new_id(), id, workspace_id, workflow_definition_id, workflow_definition_version_id,
           case when seq % 200 = 0 then 'FAILED' else 'DISPATCHED' end,
           case when seq % 100 = 0 then 'FAILED' else 'COMPLETED' end, 'embedded', 0, 0, created_at, created_at,
           created_at + interval '1 second', 'bench', case when seq % 100 = 0 then '{\"message\": \"as told\"}'::jsonb end
    from made";

const BACKLOG: &str = "
    insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
    select d.workspace_id, d.id, jsonb_build_object('order', n)
    from (select n, row_number() over (order by n) % $2 as place from generate_series(1, $1) n) n
    join (select id, workspace_id, row_number() over (order by id) - 1 as place from stationmaster.workflow_definitions) d
      on d.place = n.place";

/// Makes `rows` items, four of five of them ended.
pub async fn make(database: &Database, rows: i64, mut progress: impl FnMut(i64)) -> Result<Record> {
    let pool = &database.pool();
    let workspaces = "insert into stationmaster.workspaces (name, max_concurrent)
                      select 'bench-' || lpad(n::text, 4, '0'), 0 from generate_series(1, $1) n returning id";
    let ids: Vec<Uuid> = sqlx::query_scalar(workspaces)
        .bind(WORKSPACES)
        .fetch_all(pool)
        .await?;
    sqlx::raw_sql(
        "insert into stationmaster.workflow_definitions (workspace_id, name) select id, 'bench' from stationmaster.workspaces;
         insert into stationmaster.workflow_definition_versions (workflow_definition_id, workflow)
         select id, '{\"nodes\": [{\"id\": \"a\", \"type\": \"noop\"}]}' from stationmaster.workflow_definitions",
    )
    .execute(pool)
    .await?;
    let ended = rows * 4 / 5;
    let mut done = 0;
    while done < ended {
        let up_to = (done + BATCH).min(ended);
        let insert = sqlx::query(ENDED)
            .bind(done + 1)
            .bind(up_to)
            .bind(ended)
            .bind(WORKSPACES);
        insert.execute(pool).await?;
        done = up_to;
        progress(done);
    }
    sqlx::query(BACKLOG)
        .bind(rows - ended)
        .bind(WORKSPACES)
        .execute(pool)
        .await?;
    sqlx::raw_sql("vacuum analyze").execute(pool).await?;
    progress(rows);
    Ok(Record {
        large: ids[0],
        small: ids[500],
    })
}
