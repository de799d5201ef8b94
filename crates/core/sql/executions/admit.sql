-- Admits items of workspaces whose capacity rows this transaction has locked: takes the first `take` ready items of
-- each, in priority then age order, makes their executions (STARTING, with holder, token and lease) and moves the
-- counters. Called by the claim, after lock_eligible and in a later snapshot. Items of a paused definition are parked
-- instead. Locks pending rows, skipping what others hold (a cancel). Index: queue_pending_in_line from the remembered
-- head on. A row that changed since the snapshot is not found again by its ctid and stays; whoever changed it left a hint.
-- The first execution of an item has the item's own id.
-- $1 workspaces, $2 how many each may take, $3 holder, $4 lease in seconds, $5 token, $6 engine, $7 which of that name.
with room as (
    select c.workspace_id, r.take, coalesce(c.head_rank, -9223372036854775808) as head_rank, coalesce(c.head_seq, 0) as head_seq
    from unnest($1::uuid[], $2::integer[]) as r (workspace_id, take)
    join stationmaster_internal.workspace_capacity c using (workspace_id)
), picked as materialized (
    select p.*, d.id is not null as parked
    from room r
    cross join lateral (
        select p.ctid as place, p.item_id, p.seq, p.rank, p.workspace_id, p.workflow_definition_id,
               p.workflow_definition_version_id, p.execution_id, p.attempts, p.recoveries
        from stationmaster_internal.queue_pending p
        where p.workspace_id = r.workspace_id and p.stage = 'ready' and (p.rank, p.seq) >= (r.head_rank, r.head_seq)
        order by p.rank, p.seq
        limit r.take
        for update skip locked
    ) p
    left join stationmaster.workflow_definitions d on d.paused and d.id = p.workflow_definition_id
), parked as (
    update stationmaster_internal.queue_pending p
    set stage = 'parked'
    where p.ctid = any (array(select place from picked where parked))
), taken as (
    delete from stationmaster_internal.queue_pending p
    where p.ctid = any (array(select place from picked where not parked))
    returning p.item_id, p.seq, p.rank, p.workspace_id, p.workflow_definition_id, p.workflow_definition_version_id,
              p.execution_id, p.attempts, p.recoveries, p.run_at
), moment as materialized (
    -- The moment itself, not that of the transaction's start: it must lie after the end that freed the slot.
    select clock_timestamp() as claimed_at
), admitted as (
    insert into stationmaster_internal.executions_active
        (execution_id, item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, state,
         holder, token, lease_until, engine, engine_id, attempts, recoveries, claimed_at)
    select coalesce(execution_id, item_id), item_id, seq, rank, workspace_id, workflow_definition_id,
           workflow_definition_version_id, 'STARTING', $3, $5, (select claimed_at + make_interval(secs => $4) from moment), $6, $7,
           attempts, recoveries, (select claimed_at from moment)
    from taken
), served as (
    -- One grouping instead of joins, which could be planned as nested loops.
    select workspace_id, sum(take) as take, count(last) as found, max(last) as last, sum(admitted) as admitted
    from (
        select workspace_id, take, null::bigint[] as last, 0 as admitted from room
        union all
        select workspace_id, 0, array[rank, seq], 0 from picked
        union all
        select workspace_id, 0, null, 1 from taken
    ) each
    group by workspace_id
), moved as (
    update stationmaster_internal.workspace_capacity c
    set active       = c.active + s.admitted,
        virtual_time = c.virtual_time + s.admitted / greatest(c.weight, 1e-6),
        ready        = s.found = s.take,
        head_rank    = coalesce(s.last[1], c.head_rank),
        head_seq     = coalesce(s.last[2], c.head_seq)
    from served s
    where c.workspace_id = s.workspace_id
    returning c.workspace_id, c.active, c.max_concurrent,
              case when s.found = s.take and c.active >= c.max_concurrent
                   then exists (select from stationmaster_internal.queue_pending p
                                where p.workspace_id = c.workspace_id and p.stage = 'ready' and (p.rank, p.seq) > (s.last[1], s.last[2]))
                   else s.found = s.take end as more
)
-- First how the workspaces stand now, then what was admitted.
select workspace_id, active, max_concurrent, more, null::uuid as execution_id, null::uuid as item_id,
       null::uuid as workflow_definition_id, null::uuid as workflow_definition_version_id, null::integer as attempts, null::timestamptz as run_at
from moved
union all
select workspace_id, null, null, null, execution_id, item_id, workflow_definition_id, workflow_definition_version_id, attempts, run_at
from taken
