-- Executions that went on in another run of theirs (continued as new, retried or reset by the engine). Called by the reconciler.
-- Locks active rows in id order. Index: executions_active_pkey. $1 executions, $2 their runs now.
with mine as materialized (
    select a.execution_id, t.run_id
    from stationmaster_internal.executions_active a
    join unnest($1::uuid[], $2::text[]) as t (execution_id, run_id) on t.execution_id = a.execution_id
    where a.state = 'RUNNING' and a.run_id is distinct from t.run_id
    order by a.execution_id
    for update of a
)
update stationmaster_internal.executions_active a
set run_id = mine.run_id
from mine
where a.execution_id = mine.execution_id
