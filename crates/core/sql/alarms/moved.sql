-- Notes that new time zone data moved the next fires of alarms. Called by the planner, in its transaction.
-- Locks nothing that exists. $1 alarms, $2 what happened.
insert into stationmaster_internal.alarm_events (alarm_id, event, actor, detail)
select m.alarm_id, 'moved', 'stationmaster', m.detail
from unnest($1::uuid[], $2::text[]) as m (alarm_id, detail)
