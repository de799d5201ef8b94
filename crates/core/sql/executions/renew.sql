-- Lengthens the leases of claims whose start is still in flight. Called by the renewer, every third of a lease.
-- Locks active rows in id order. Index: executions_active_pkey.
-- Paired as in finish.sql. $1 executions, $2 tokens, $3 lease in seconds.
with asked as materialized (
    select * from unnest($1::uuid[], $2::bigint[]) as a (execution_id, under_token)
), found as materialized (
    select a.execution_id, a.token
    from stationmaster_internal.executions_active a
    where a.execution_id = any ($1) and a.state = 'STARTING'
    order by a.execution_id
    for update
), paired as materialized (
    select *
    from found
    full join asked using (execution_id)
)
update stationmaster_internal.executions_active a
set lease_until = now() + make_interval(secs => $3)
where a.execution_id = any (array(select execution_id from paired where token = under_token))
returning a.execution_id
