-- Ends executions and frees their slots, in one step: the active row becomes a finished one, the workspace's counter
-- goes down. With a token only under that claim; without one (null) whoever holds it: the engine, a person or the
-- reconciler says that it is over.
-- Called by the settler, the watcher of closes, the canceller and the reconciler. Locks active rows in id order, then
-- capacity rows, skipping those that others hold: such executions are answered as busy and come again.
-- Index: executions_active_pkey, workspace_capacity_pkey.
-- $1 executions, $2 tokens, $3 item statuses, $4 statuses, $5 reasons, $6 last errors, $7 errors, $8 outputs,
-- $9 attempts spent by this try, $10 run ids, $11 who says so, $12 the virtual time below which nobody may enter.
with asked as (
    select *
    from unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                $9::integer[], $10::text[])
        as a (execution_id, token, item_status, status, reason, last_error, error, output, attempts, run_id)
), found as materialized (
    select a.execution_id, a.workspace_id
    from stationmaster.executions_active a
    join asked on asked.execution_id = a.execution_id and (asked.token is null or asked.token = a.token)
    where a.execution_id = any ($1)
    order by a.execution_id
    for update of a
), locked as materialized (
    select workspace_id
    from stationmaster.workspace_capacity
    where workspace_id = any (array(select distinct workspace_id from found))
    order by workspace_id
    for update skip locked
), ended as (
    delete from stationmaster.executions_active a
    where a.execution_id = any (array(select f.execution_id from found f join locked l using (workspace_id)))
    returning a.*
), freed as (
    update stationmaster.workspace_capacity c
    set active       = c.active - n.ended,
        virtual_time = case when c.eligible then c.virtual_time else greatest(c.virtual_time, $12) end
    from (select workspace_id, count(*) as ended from ended group by workspace_id) n
    where c.workspace_id = n.workspace_id
), recorded as (
    insert into stationmaster.executions_finished
        (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status, status,
         reason, engine, run_id, attempts, recoveries, holder, claimed_at, dispatched_at, finished_at, finished_by,
         last_error, error, output)
    select e.execution_id, e.item_id, e.workspace_id, e.workflow_definition_id, e.workflow_definition_version_id,
           asked.item_status, asked.status, asked.reason, e.engine, coalesce(asked.run_id, e.run_id),
           e.attempts + asked.attempts, e.recoveries, e.holder, e.claimed_at,
           case when asked.item_status = 'DISPATCHED' then coalesce(e.dispatched_at, clock_timestamp()) else e.dispatched_at end,
           clock_timestamp() + interval '1 microsecond', $11, asked.last_error, asked.error::jsonb, asked.output::jsonb
    from ended e
    join asked using (execution_id)
)
select f.execution_id, e.execution_id is not null as ended
from found f
left join ended e using (execution_id)
