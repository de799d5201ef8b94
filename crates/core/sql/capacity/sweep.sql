-- The safety net under the hints: walks the workspaces that have ready items, one index probe each, and marks those
-- that no hint speaks for (a rolled-back cancel can leave one). Called by housekeeping.
-- Locks capacity rows, skipping what others hold. Index: queue_pending_in_line (loose scan).
with recursive first_of as (
    (select workspace_id, rank, seq from stationmaster_internal.queue_pending where stage = 'ready' order by workspace_id, rank, seq limit 1)
    union all
    select n.workspace_id, n.rank, n.seq
    from first_of f
    cross join lateral (
        select p.workspace_id, p.rank, p.seq
        from stationmaster_internal.queue_pending p
        where p.stage = 'ready' and p.workspace_id > f.workspace_id
        order by p.workspace_id, p.rank, p.seq
        limit 1
    ) n
), missed as materialized (
    select c.workspace_id, f.rank, f.seq
    from first_of f
    join stationmaster_internal.workspace_capacity c using (workspace_id)
    where not c.ready or (c.head_rank, c.head_seq) > (f.rank, f.seq)
    order by c.workspace_id
    for update of c skip locked
)
update stationmaster_internal.workspace_capacity c
set ready = true, head_rank = m.rank, head_seq = m.seq
from missed m
where c.workspace_id = m.workspace_id
returning c.workspace_id
