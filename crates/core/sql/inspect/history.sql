-- The life of an item, oldest first. Locks nothing. $1 item.
select at, event, actor, execution_id, detail
from stationmaster.execution_history
where item_id = $1
order by at, event
limit 1000
