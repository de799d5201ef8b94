-- Items of a workspace that may be on a page, in the order in which they go: what is ready, by priority and then by age. Called by people.
-- Locks nothing. Index: queue_pending_in_line, and queue_items_pkey where a time is asked for.
-- $1 workspace, $2 enqueued at or after, $3 enqueued before (null: any), $4 and $5 beyond this rank and place, $6 how many.
select p.item_id, p.rank, p.seq
from stationmaster_internal.queue_pending p
where p.workspace_id = $1 and p.stage = 'ready' and (p.rank, p.seq) > ($4, $5)
  and (($2::timestamptz is null and $3::timestamptz is null)
       or exists (select from stationmaster_internal.queue_items i where i.id = p.item_id
                  and ($2::timestamptz is null or i.created_at >= $2) and ($3::timestamptz is null or i.created_at < $3)))
order by p.rank, p.seq
limit $6
