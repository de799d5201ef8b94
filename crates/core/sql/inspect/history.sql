-- The life of an item, oldest first. Called by people. Locks nothing.
-- Index: those by item of each table behind the view. $1 item.
select at, event, actor,
       (select n.name from stationmaster_internal.server_names n
        where n.id = case when actor ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' then actor::uuid end) as server,
       execution_id, detail
from stationmaster.execution_history
where item_id = $1
order by at, array_position(array['enqueued', 'claimed', 'dispatched'], event) nulls last, event
limit 1000
