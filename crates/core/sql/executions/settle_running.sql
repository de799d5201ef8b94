-- Settles starts: the engine runs these executions. Only under the claim's own token; others stay as they are.
-- Called by the settler, in batches. Locks active rows in id order. Index: executions_active_pkey.
-- $1 executions, $2 tokens, $3 run ids. Answers the executions that were settled.
with asked as (
    select * from unnest($1::uuid[], $2::bigint[], $3::text[]) as a (execution_id, token, run_id)
), mine as materialized (
    select a.execution_id, asked.run_id
    from stationmaster.executions_active a
    join asked on asked.execution_id = a.execution_id and asked.token = a.token
    where a.execution_id = any ($1)
    order by a.execution_id
    for update of a
)
update stationmaster.executions_active a
set state = 'RUNNING', lease_until = null, dispatched_at = clock_timestamp(), run_id = m.run_id
from mine m
where a.execution_id = m.execution_id
returning a.execution_id
