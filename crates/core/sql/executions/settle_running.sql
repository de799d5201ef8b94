-- Settles starts: the engine runs these executions. Only under the claim's own token and in the hands of these holders (after a
-- failover that lost commits the same token may have been given twice); others stay as they are.
-- Called by the settler, in batches. Locks active rows in id order. Index: executions_active_pkey.
-- Paired as in finish.sql.
-- $1 executions, $2 tokens, $3 run ids, $4 the ids of the server that settles. Answers the executions that were settled.
with asked as materialized (
    select * from unnest($1::uuid[], $2::bigint[], $3::text[]) as a (execution_id, under_token, known_run_id)
), found as materialized (
    select a.execution_id, a.token
    from stationmaster_internal.executions_active a
    where a.execution_id = any ($1)
    order by a.execution_id
    for update
), paired as materialized (
    select *
    from found
    full join asked using (execution_id)
)
update stationmaster_internal.executions_active a
set state = 'RUNNING', lease_until = null, dispatched_at = clock_timestamp(), run_id = p.known_run_id
from paired p
where p.token = p.under_token and a.execution_id = p.execution_id and a.holder = any ($4)
returning a.execution_id
