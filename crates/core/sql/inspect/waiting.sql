-- The facts from which it is told why items wait, and for how long: those of a page together, so that each workspace is looked at once.
-- Locks nothing; the line of a workspace is counted up to a bound, and of what ended the last fifty executions of the workspace that ran are
-- asked how long they did. Index: queue_pending_pkey, queue_pending_in_line, executions_finished_by_workspace; what runs is read whole, once.
-- $1 items, $2 how many are counted of all lines together.
with asked as materialized (
    select p.item_id, p.workspace_id, p.workflow_definition_id, p.stage, p.run_at, p.waits_for, p.last_error, p.rank, p.seq
    from stationmaster_internal.queue_pending p
    where p.item_id = any ($1)
), places as materialized (
    select distinct a.workspace_id from asked a
), bound as (
    select greatest($2 / greatest(count(*), 1), 1) as counted from places
), lines as (
    select p.workspace_id, null::uuid as item_id, 1 as counts, l.rank, l.seq
    from places p
    cross join lateral (
        select q.rank, q.seq
        from stationmaster_internal.queue_pending q
        where q.workspace_id = p.workspace_id and q.stage = 'ready'
        order by q.rank, q.seq
        limit (select b.counted from bound b)) l
    union all
    select a.workspace_id, a.item_id, 0, a.rank, a.seq from asked a
), positions as (
    -- Whoever is asked for stands behind all that are ready before it, also where it is none of them itself.
    select item_id, 1 + sum(counts) over (partition by workspace_id order by rank, seq, counts rows unbounded preceding) as position
    from lines
), held as (
    select h.workspace_id, array_agg(h.execution_id order by h.claimed_at) as holders
    from (select a.workspace_id, a.execution_id, a.claimed_at, row_number() over (partition by a.workspace_id order by a.claimed_at) as place
          from stationmaster_internal.executions_active a
          where a.workspace_id in (select p.workspace_id from places p)) h
    where h.place <= 20
    group by h.workspace_id
), paces as (
    select p.workspace_id, count(f.claimed_at) as runs,
           avg(greatest(extract(epoch from f.ended_at - f.claimed_at), 0))::double precision as seconds
    from places p
    cross join lateral (
        select coalesce(f.closed_at, f.finished_at) as ended_at, f.claimed_at
        from stationmaster_internal.executions_finished f
        where f.workspace_id = p.workspace_id and f.dispatched_at is not null
        order by f.execution_id desc
        limit 50) f
    group by p.workspace_id
)
select a.item_id, a.workspace_id, a.stage, a.run_at, a.waits_for, a.last_error, c.paused as workspace_paused,
       coalesce(d.paused, false) as definition_paused, c.active, c.max_concurrent, l.position,
       (select count(*) from stationmaster_internal.servers where lease_until > now() and claiming) as servers,
       (select coalesce(bool_or(engine_up), false) from stationmaster_internal.servers where lease_until > now() and claiming) as engine_up,
       coalesce(h.holders, '{}') as holders, coalesce(r.runs, 0) as runs, r.seconds,
       (select b.counted from bound b) as counted, now() as asked_at
from asked a
join positions l on l.item_id = a.item_id
join stationmaster_internal.workspace_capacity c on c.workspace_id = a.workspace_id
left join stationmaster.workflow_definitions d on d.id = a.workflow_definition_id
left join held h on h.workspace_id = a.workspace_id
left join paces r on r.workspace_id = a.workspace_id
