-- Changes the priority of items that wait. Called by people, a page at a time. Locks pending rows, then the items'.
-- Index: queue_pending_pkey, queue_items_pkey; given arrays, because a join may be planned as one that reads a whole table.
-- $1 items, $2 priority, $3 who. Answers those that had another one.
with chosen as materialized (
    select item_id
    from stationmaster_internal.queue_pending
    where item_id = any ($1) and rank <> -$2::bigint
    order by item_id
    for update
), moved as (
    update stationmaster_internal.queue_pending p
    set rank = -$2::bigint
    where p.item_id = any (array(select item_id from chosen))
    returning p.item_id, p.execution_id, p.workspace_id, p.rank, p.seq, p.stage
), kept as (
    update stationmaster_internal.queue_items i
    set priority = $2
    where i.id = any (array(select item_id from moved))
), hinted as (
    insert into stationmaster_internal.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, rank, seq
    from moved
    where stage = 'ready'
    order by workspace_id, rank, seq
    returning stationmaster_internal.ring_for_hint(id)
), noted as (
    insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, event, actor, detail)
    select item_id, execution_id, workspace_id, 'priority_changed', $3, 'priority ' || $2
    from moved
)
select item_id, workspace_id
from moved
