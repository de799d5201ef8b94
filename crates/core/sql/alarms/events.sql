-- What was done to an alarm, oldest first, for people. Locks nothing.
-- Index: alarm_events_by_alarm. $1 alarm.
select at, event, actor, detail
from stationmaster_internal.alarm_events
where alarm_id = $1
order by id
limit 1000
