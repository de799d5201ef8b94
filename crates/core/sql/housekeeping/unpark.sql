-- Parked items whose definition is not paused any more, or is gone, go back into the queue: a claim that parked while
-- the definition was being resumed leaves some. Called by housekeeping. Locks pending rows, skipping what others hold.
-- Index: queue_pending_in_line. $1 how many.
with stranded as materialized (
    select p.item_id
    from stationmaster_internal.queue_pending p
    where p.stage = 'parked'
      and not exists (select from stationmaster.workflow_definitions d where d.id = p.workflow_definition_id and d.paused)
    limit $1
    for update skip locked
), unparked as (
    update stationmaster_internal.queue_pending p
    set stage = 'ready'
    where p.item_id = any (array(select item_id from stranded))
    returning p.workspace_id, p.rank, p.seq
)
insert into stationmaster_internal.queue_hints (workspace_id, rank, seq)
select distinct on (workspace_id) workspace_id, rank, seq
from unparked
order by workspace_id, rank, seq
returning stationmaster_internal.ring_for_hint(id)
