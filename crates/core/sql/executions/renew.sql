-- Lengthens the leases of claims whose start is still in flight. Called by the renewer, every third of a lease.
-- Locks active rows in id order. Index: executions_active_pkey. $1 executions, $2 tokens, $3 lease in seconds.
with mine as materialized (
    select a.execution_id
    from stationmaster.executions_active a
    join unnest($1::uuid[], $2::bigint[]) as asked (execution_id, token)
        on asked.execution_id = a.execution_id and asked.token = a.token
    where a.execution_id = any ($1) and a.state = 'STARTING'
    order by a.execution_id
    for update of a
)
update stationmaster.executions_active a
set lease_until = now() + make_interval(secs => $3)
from mine m
where a.execution_id = m.execution_id
returning a.execution_id
