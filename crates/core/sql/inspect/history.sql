-- The life of an item, oldest first. Called by people. Locks nothing.
-- Index: those by item of each table behind the view. $1 item.
select at, event, actor,
       stationmaster_internal.server_behind(actor) as server,
       execution_id, detail
from stationmaster.execution_history
where item_id = $1
order by at, array_position(array['enqueued', 'claimed', 'dispatched'], event) nulls last, event
limit 1000
