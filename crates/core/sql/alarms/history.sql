-- What was done to an alarm, newest first, a page at a time, for people. Locks nothing.
-- Index: alarm_events_by_alarm. $1 alarm, $2 before this number, $3 how many.
select id, at, event, actor, detail
from stationmaster_internal.alarm_events
where alarm_id = $1 and id < $2
order by id desc
limit $3
