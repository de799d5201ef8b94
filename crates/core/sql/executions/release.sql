-- Gives claims back: the active row becomes a pending one again, under the same execution id, and the slot is free.
-- Called by the settler (the engine refused, or is away), by shutdown and by recovery. Only under the token named, and only in the
-- hands of these holders: after a failover that lost commits the same token may have been given twice.
-- Locks active rows in id order, then capacity rows, skipping those that others hold (answered as busy).
-- Index: executions_active_pkey, workspace_capacity_pkey. Paired as in finish.sql.
-- $1 executions, $2 tokens, $3 seconds to wait (0: at once), $4 attempts spent, $5 recoveries to count, $6 events,
-- $7 details, $8 who, $9 the virtual time below which nobody may enter, $10 the ids of the server that gives back.
with asked as materialized (
    select *
    from unnest($1::uuid[], $2::bigint[], $3::double precision[], $4::integer[], $5::integer[], $6::text[], $7::text[])
        as a (execution_id, under_token, delay, spent, recovered, event, detail)
), found as materialized (
    select a.*
    from stationmaster_internal.executions_active a
    where a.execution_id = any ($1)
    order by a.execution_id
    for update
), paired as materialized (
    select *
    from found
    full join asked using (execution_id)
), mine as materialized (
    select *
    from paired
    where token = under_token and holder = any ($10)
), locked as materialized (
    select workspace_id
    from stationmaster_internal.workspace_capacity
    where workspace_id = any (array(select distinct workspace_id from mine))
    order by workspace_id
    for update skip locked
), decided as materialized (
    select m.*, m.workspace_id in (select workspace_id from locked) as released
    from mine m
), given_back as (
    delete from stationmaster_internal.executions_active a
    where a.execution_id = any (array(select execution_id from decided where released))
), freed as (
    update stationmaster_internal.workspace_capacity c
    set active       = c.active - n.released,
        virtual_time = case when c.eligible then c.virtual_time else greatest(c.virtual_time, $9) end
    from (select workspace_id, count(*) as released from decided where released group by workspace_id) n
    where c.workspace_id = n.workspace_id
), waiting as (
    insert into stationmaster_internal.queue_pending
        (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, stage, run_at, waits_for,
         execution_id, attempts, recoveries, last_error)
    select item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id,
           case when delay > 0 then 'later' else 'ready' end,
           case when delay > 0 then clock_timestamp() + make_interval(secs => delay) end,
           case when delay > 0 then event end,
           execution_id, attempts + spent, recoveries + recovered, detail
    from decided
    where released
    returning workspace_id, rank, seq, stage
), hinted as (
    insert into stationmaster_internal.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, rank, seq
    from waiting
    where stage = 'ready'
    order by workspace_id, rank, seq
    returning stationmaster_internal.ring_for_hint(id)
), wished as (
    -- Its cancel was passed on to a run that is no more: the canceller finds it in the queue.
    insert into stationmaster_internal.cancel_requests (execution_id, actor, reason)
    select d.execution_id, coalesce(e.actor, $8), e.detail
    from decided d
    left join lateral (select q.actor, q.detail from stationmaster_internal.queue_events q
                       where q.item_id = d.item_id and q.event = 'cancel_requested' order by q.id desc limit 1) e on true
    where d.released and d.cancel_requested_at is not null
    on conflict (execution_id) do nothing
), noted as (
    -- With the row goes what it knew of the claim; of one that was taken over from a lost server that is on record already.
    insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, at, event, actor, detail)
    select d.item_id, d.execution_id, d.workspace_id, step.at, step.event, step.actor, step.detail
    from decided d
    cross join lateral (values (d.claimed_at, 'claimed', d.holder::text, null),
                               (d.dispatched_at, 'dispatched', d.holder::text, d.run_id),
                               (clock_timestamp(), d.event, $8, d.detail)) as step (at, event, actor, detail)
    where d.released and step.at is not null
      and not exists (select from stationmaster_internal.queue_events e
                      where e.item_id = d.item_id and e.execution_id = d.execution_id and e.event = step.event and e.at = step.at)
)
select execution_id, released
from decided
