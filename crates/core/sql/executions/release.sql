-- Gives claims back: the active row becomes a pending one again, under the same execution id, and the slot is free.
-- Called by the settler (the engine refused, or is away), by shutdown and by recovery. Only under the token named.
-- Locks active rows in id order, then capacity rows, skipping those that others hold (answered as busy).
-- Index: executions_active_pkey, workspace_capacity_pkey.
-- $1 executions, $2 tokens, $3 seconds to wait (0: at once), $4 attempts spent, $5 recoveries to count, $6 events,
-- $7 details, $8 who, $9 the virtual time below which nobody may enter.
with asked as (
    select *
    from unnest($1::uuid[], $2::bigint[], $3::double precision[], $4::integer[], $5::integer[], $6::text[], $7::text[])
        as a (execution_id, token, delay, attempts, recoveries, event, detail)
), found as materialized (
    select a.execution_id, a.workspace_id
    from stationmaster.executions_active a
    join asked on asked.execution_id = a.execution_id and asked.token = a.token
    where a.execution_id = any ($1)
    order by a.execution_id
    for update of a
), locked as materialized (
    select workspace_id
    from stationmaster.workspace_capacity
    where workspace_id = any (array(select distinct workspace_id from found))
    order by workspace_id
    for update skip locked
), given_back as (
    delete from stationmaster.executions_active a
    where a.execution_id = any (array(select f.execution_id from found f join locked l using (workspace_id)))
    returning a.*
), freed as (
    update stationmaster.workspace_capacity c
    set active       = c.active - n.given_back,
        virtual_time = case when c.eligible then c.virtual_time else greatest(c.virtual_time, $9) end
    from (select workspace_id, count(*) as given_back from given_back group by workspace_id) n
    where c.workspace_id = n.workspace_id
), waiting as (
    insert into stationmaster.queue_pending
        (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, lane, run_at, waits_for,
         execution_id, attempts, recoveries, last_error)
    select g.item_id, g.seq, g.rank, g.workspace_id, g.workflow_definition_id, g.workflow_definition_version_id,
           case when asked.delay > 0 then 'l' else 'r' end::"char",
           case when asked.delay > 0 then clock_timestamp() + make_interval(secs => asked.delay) end,
           case when asked.delay > 0 then asked.event end,
           g.execution_id, g.attempts + asked.attempts, g.recoveries + asked.recoveries, asked.detail
    from given_back g
    join asked using (execution_id)
    returning workspace_id, rank, seq, lane
), hinted as (
    insert into stationmaster.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, rank, seq
    from waiting
    where lane = 'r'
    order by workspace_id, rank, seq
), noted as (
    insert into stationmaster.queue_events (item_id, execution_id, workspace_id, event, actor, detail)
    select g.item_id, g.execution_id, g.workspace_id, asked.event, $8, asked.detail
    from given_back g
    join asked using (execution_id)
)
select f.execution_id, g.execution_id is not null as released
from found f
left join given_back g using (execution_id)
