-- Workspaces whose first item has been ready for a minute and does not start for another reason than that all slots are taken: paused, no slot
-- at all, or (stuck) there are free ones. Called by the doctor. Locks nothing. Index: queue_pending_in_line, queue_items_pkey.
select w.name, case when c.paused then 'paused' when c.max_concurrent = 0 then 'no slots' else 'stuck' end as why,
       extract(epoch from now() - head.since)::bigint as seconds
from stationmaster_internal.workspace_capacity c
join stationmaster.workspaces w on w.id = c.workspace_id
cross join lateral (
    select greatest(i.created_at, i.run_at, p.run_at) as since
    from stationmaster_internal.queue_pending p
    join stationmaster_internal.queue_items i on i.id = p.item_id
    where p.workspace_id = c.workspace_id and p.stage = 'ready'
    order by p.rank, p.seq
    limit 1) head
where (c.paused or c.active < c.max_concurrent or c.max_concurrent = 0) and not c.gone and head.since < now() - interval '1 minute'
order by head.since
limit 100
