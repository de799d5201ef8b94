-- Items whose time has come become ready, and leave a hint. Called by the claim loop when the next due time is reached.
-- Locks pending rows, skipping what others hold. Index: queue_pending_later. $1 how many.
with due as materialized (
    select item_id
    from stationmaster_internal.queue_pending
    where stage = 'later' and waits_for is not null and run_at <= now()
    order by run_at
    limit $1
    for update skip locked
), promoted as (
    update stationmaster_internal.queue_pending p
    set stage = 'ready', waits_for = null
    where p.item_id = any (array(select item_id from due))
    returning p.workspace_id, p.rank, p.seq
), hinted as (
    insert into stationmaster_internal.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, rank, seq
    from promoted
    order by workspace_id, rank, seq
    returning stationmaster_internal.ring_for_hint(id)
)
select count(*) as promoted
from promoted
