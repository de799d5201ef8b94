-- Ended items that a filter matches, a page at a time, for bulk retries and their preview. Locks nothing.
-- Index: executions_finished_items_badly.
-- $1 workspaces, $2 definition, $3 status of the execution or item, $4 reason, $5 ended after, $6 ended before (null: any),
-- $7 after this item, $8 how many, $9 whose status, item or execution (null: either).
select f.item_id
from stationmaster_internal.executions_finished f
where f.superseded_at is null and coalesce(f.status, '') <> 'COMPLETED'
  and ($1::uuid[] is null or f.workspace_id = any ($1))
  and ($2::uuid is null or f.workflow_definition_id = $2)
  and ($3::text is null or ($9::text is null and coalesce(f.status, f.item_status) = $3)
       or ($9 is distinct from 'execution' and f.item_status = $3) or ($9 = 'execution' and f.status = $3))
  and ($4::text is null or f.reason = $4)
  and ($5::timestamptz is null or f.finished_at >= $5)
  and ($6::timestamptz is null or f.finished_at < $6)
  and f.item_id > $7
order by f.item_id
limit $8
