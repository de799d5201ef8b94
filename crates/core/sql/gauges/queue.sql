-- How much waits and for how long, for the gauges. Called when metrics are asked for. Locks nothing. The counts are the planner's
-- where they would be costly to take exactly: hot tables are small, backlogs are estimated. The oldest item whose time has come is looked
-- for among the oldest 20,000 that wait, and only where all of those are scheduled or parked among the heads of all queues. What could be
-- started at once, but for a server, is at the heads of the queues of eligible workspaces, behind hints that no claim has absorbed yet (the
-- oldest 1,000 of them are looked at), or scheduled for a time that is over.
-- Index: queue_pending_pkey, queue_pending_in_line, queue_pending_later, queue_pending_unseen, queue_hints_pkey.
with oldest as (
    select p.item_id, p.run_at
    from (select item_id, workspace_id, stage, run_at from stationmaster_internal.queue_pending order by item_id limit 20000) p
    join stationmaster_internal.workspace_capacity c using (workspace_id)
    where p.stage = 'ready' and not c.paused
    order by p.item_id
    limit 1
), heads as (
    select p.item_id, p.run_at, c.eligible
    from stationmaster_internal.workspace_capacity c
    cross join lateral (
        select p.item_id, p.run_at
        from stationmaster_internal.queue_pending p
        where p.workspace_id = c.workspace_id and p.stage = 'ready'
          and (p.rank, p.seq) >= (coalesce(c.head_rank, -9223372036854775808), coalesce(c.head_seq, 0))
        order by p.rank, p.seq
        limit 1
    ) p
    where c.eligible or not exists (select from oldest) and not c.paused
), hinted as (
    select p.item_id, p.run_at
    from ((select workspace_id, rank, seq from stationmaster_internal.queue_hints order by id limit 1000)
          union all
          (select workspace_id, rank, seq from stationmaster_internal.queue_pending where unseen order by seq limit 1000)) h
    join stationmaster_internal.workspace_capacity c on c.workspace_id = h.workspace_id
    cross join lateral (
        select p.item_id, p.run_at
        from stationmaster_internal.queue_pending p
        where p.workspace_id = h.workspace_id and p.stage = 'ready' and (p.rank, p.seq) >= (h.rank, h.seq)
        order by p.rank, p.seq
        limit 1
    ) p
    where not c.paused and not c.gone and c.active < c.max_concurrent
), overdue as (
    select p.item_id, p.run_at
    from (select item_id, workspace_id, run_at from stationmaster_internal.queue_pending
          where stage = 'later' and waits_for is not null and run_at <= clock_timestamp() order by run_at limit 1000) p
    join stationmaster_internal.workspace_capacity c using (workspace_id)
    where not c.paused and not c.gone and c.active < c.max_concurrent
), waiting as (
    select item_id, run_at, false as eligible from oldest
    union all
    select item_id, run_at, eligible from heads
    union all
    select item_id, run_at, true from hinted
    union all
    select item_id, run_at, true from overdue
), aged as (
    select extract(epoch from clock_timestamp() - greatest(i.created_at, w.run_at))::double precision as age, w.eligible
    from waiting w
    join stationmaster_internal.queue_items i on i.id = w.item_id
)
select (select case when reltuples < 100000 then (select count(*) from stationmaster_internal.queue_pending)::double precision
                    else reltuples::double precision end
        from pg_class where oid = 'stationmaster_internal.queue_pending'::regclass) as pending,
       (select count(*)::double precision from stationmaster_internal.executions_active) as active,
       (select greatest(max(age), 0) from aged) as oldest_age,
       (select greatest(max(age), 0) from aged where eligible) as runnable_age
