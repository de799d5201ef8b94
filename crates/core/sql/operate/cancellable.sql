-- Items that wait or run and match a filter, a page at a time, for bulk cancels and their preview. Locks nothing.
-- What is to be cancelled already does not match. Index: queue_pending_pkey, cancel_requests_pkey. Reads the (small) active table.
-- What a retry put back at that time or later counts as enqueued then: whoever looked before did not see it waiting. Index: executions_finished_items_badly.
-- When an item was enqueued is asked item by item: `exists` may be planned as a hash of all items there ever were.
-- $1 workspaces, $2 definition, $3 status PENDING, CLAIMED or DISPATCHED (null: any), $4 enqueued at or after, $5 enqueued before
-- (null: any), $6 after this item, $7 how many.
with candidates as (
    (select p.item_id
     from stationmaster_internal.queue_pending p
     where ($3::text is null or $3 = 'PENDING') and ($1::uuid[] is null or p.workspace_id = any ($1))
       and ($2::uuid is null or p.workflow_definition_id = $2) and p.item_id > $6
       and (($4::timestamptz is null and $5::timestamptz is null)
            or (select ($4::timestamptz is null or i.created_at >= $4) and ($5::timestamptz is null or i.created_at < $5)
                from stationmaster_internal.queue_items i where i.id = p.item_id))
       and ($5 is null or p.execution_id is null or p.execution_id = p.item_id
            or (select coalesce(max(f.superseded_at) < $5, true)
                from stationmaster_internal.executions_finished f
                where f.item_id = p.item_id and coalesce(f.status, '') <> 'COMPLETED'))
     order by p.item_id
     limit $7)
    union all
    (select a.item_id
     from stationmaster_internal.executions_active a
     where ($3::text is null or $3 = case a.state when 'STARTING' then 'CLAIMED' else 'DISPATCHED' end)
       and ($1::uuid[] is null or a.workspace_id = any ($1)) and ($2::uuid is null or a.workflow_definition_id = $2)
       and a.item_id > $6
       and not exists (select from stationmaster_internal.cancel_requests r where r.execution_id = a.execution_id)
       and (($4::timestamptz is null and $5::timestamptz is null)
            or (select ($4::timestamptz is null or i.created_at >= $4) and ($5::timestamptz is null or i.created_at < $5)
                from stationmaster_internal.queue_items i where i.id = a.item_id))
       and ($5 is null or a.execution_id is null or a.execution_id = a.item_id
            or (select coalesce(max(f.superseded_at) < $5, true)
                from stationmaster_internal.executions_finished f
                where f.item_id = a.item_id and coalesce(f.status, '') <> 'COMPLETED'))
     order by a.item_id
     limit $7)
)
select item_id
from candidates
order by item_id
limit $7
