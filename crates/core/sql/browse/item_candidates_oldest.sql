-- Ids of items that may be on a page, oldest first: item_candidates.sql the other way round, by the same indexes. Locks nothing. Planned anew for each filter,
-- so that only the branch of the status asked for is read.
-- Index: queue_items_pkey, queue_items_by_workspace, queue_items_at, queue_pending_pkey, executions_finished_items_badly.
-- $1 workspaces, $2 status, $3 enqueued at or after, $4 enqueued before (null: any), $5 above this id, $6 how many.
-- Those of a workspace are asked for as a stretch of its index: by the order of another the way leads past those of everybody else.
with candidates as (
    (select i.id
     from stationmaster_internal.queue_items i
     where ($2::text is null or $2 = 'DISPATCHED') and $1::uuid[] is null and i.id > $5
       and ($3::timestamptz is null or i.created_at >= $3) and ($4::timestamptz is null or i.created_at < $4)
     order by i.id
     limit $6)
    union all
    select mine.id
    from unnest($1::uuid[]) as w (id)
    cross join lateral (
        select i.id
        from stationmaster_internal.queue_items i
        where ($2::text is null or $2 = 'DISPATCHED') and i.workspace_id <= w.id and (i.workspace_id, i.id) > (w.id, $5)
          and ($3::timestamptz is null or i.created_at >= $3) and ($4::timestamptz is null or i.created_at < $4)
        order by i.workspace_id, i.id
        limit $6) mine
    union all
    (select p.item_id
     from stationmaster_internal.queue_pending p
     where $2 = 'PENDING' and ($1::uuid[] is null or p.workspace_id = any ($1)) and p.item_id > $5
       and (($3::timestamptz is null and $4::timestamptz is null)
            or exists (select from stationmaster_internal.queue_items i where i.id = p.item_id
                       and ($3::timestamptz is null or i.created_at >= $3) and ($4::timestamptz is null or i.created_at < $4)))
     order by p.item_id
     limit $6)
    union all
    (select a.item_id
     from stationmaster_internal.executions_active a
     join stationmaster_internal.queue_items i on i.id = a.item_id
     where $2 = 'CLAIMED' and a.state = 'STARTING' and ($1::uuid[] is null or a.workspace_id = any ($1)) and a.item_id > $5
       and ($3::timestamptz is null or i.created_at >= $3) and ($4::timestamptz is null or i.created_at < $4)
     order by a.item_id
     limit $6)
    union all
    (select f.item_id
     from stationmaster_internal.executions_finished f
     join stationmaster_internal.queue_items i on i.id = f.item_id
     where $2 in ('FAILED', 'CANCELLED') and coalesce(f.status, '') <> 'COMPLETED' and f.item_status = $2 and f.superseded_at is null
       and ($1::uuid[] is null or f.workspace_id = any ($1)) and f.item_id > $5
       and ($3::timestamptz is null or i.created_at >= $3) and ($4::timestamptz is null or i.created_at < $4)
     order by f.item_id
     limit $6)
)
select id
from candidates
order by id
limit $6
