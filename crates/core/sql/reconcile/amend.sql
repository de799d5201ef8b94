-- Runs that were begun by a reset, after their executions had ended, and that are over before anybody saw them: their end is the
-- execution's end, and the former one stays in the history. Only where the engine's word of an earlier run's end is the record, and no
-- retry followed. Called by the watcher of closes. Locks finished rows in id order. Index: executions_finished_pkey.
-- $1 executions, $2 run ids, $3 statuses, $4 errors, $5 outputs, $6 when they closed, $7 the engine, $8 the reason,
-- $9 what is known of outputs that were left with the engine. Answers the executions.
with told as materialized (
    select *
    from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[],
                $9::text[])
        as t (execution_id, run_id, status, error, output, closed_at, omitted)
), former as materialized (
    select f.execution_id, f.item_id, f.workspace_id, f.finished_at, f.status, f.finished_by, f.run_id
    from stationmaster_internal.executions_finished f
    join told t on t.execution_id = f.execution_id
    where f.superseded_at is null and f.closed_at < t.closed_at and f.run_id is distinct from t.run_id
    order by f.execution_id
    for update of f
), amended as (
    update stationmaster_internal.executions_finished f
    set status = t.status, item_status = 'DISPATCHED', reason = $8, run_id = t.run_id, error = t.error::jsonb, output = t.output::jsonb,
        output_omitted = t.omitted::jsonb,
        closed_at = t.closed_at, finished_at = clock_timestamp() + interval '1 microsecond', finished_by = $7, last_error = null
    from former
    join told t on t.execution_id = former.execution_id
    where f.execution_id = former.execution_id
    returning f.execution_id
), noted as (
    insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, at, event, actor, detail)
    select item_id, execution_id, workspace_id, finished_at, lower(status), finished_by, run_id
    from former
    union all
    select f.item_id, f.execution_id, f.workspace_id, clock_timestamp(), 'reset', $7, t.run_id
    from former f
    join told t on t.execution_id = f.execution_id
)
select execution_id
from amended
