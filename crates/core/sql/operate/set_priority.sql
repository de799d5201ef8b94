-- Changes the priority of an item that waits. Called by people. Locks the pending row, then the item's.
-- Index: queue_pending_pkey. $1 item, $2 priority, $3 who, $4 only if it has this priority (null: any).
with moved as (
    update stationmaster_internal.queue_pending
    set rank = -$2::bigint
    where item_id = $1 and ($4::integer is null or rank = -$4::bigint)
    returning item_id, execution_id, workspace_id, rank, seq, stage
), kept as (
    update stationmaster_internal.queue_items i
    set priority = $2
    from moved m
    where i.id = m.item_id
), hinted as (
    insert into stationmaster_internal.queue_hints (workspace_id, rank, seq)
    select workspace_id, rank, seq
    from moved
    where stage = 'ready'
    returning stationmaster_internal.ring_for_hint(id)
)
insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, event, actor, detail)
select item_id, execution_id, workspace_id, 'priority_changed', $3, 'priority ' || $2
from moved
returning workspace_id
