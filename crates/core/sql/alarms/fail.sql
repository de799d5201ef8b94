-- Ends alarms that can never fire, with the reason. Called by the planner and by claims; the caller has locked the alarms.
-- Locks their open rows, skipping what others hold. $1 alarms, $2 reasons.
with told as (
    insert into stationmaster_internal.alarm_events (alarm_id, event, actor, detail)
    select f.alarm_id, 'failed', 'stationmaster', f.reason
    from unnest($1::uuid[], $2::text[]) as f (alarm_id, reason)
)
select stationmaster_internal.end_alarm(f.alarm_id, 'failed', f.reason)
from unnest($1::uuid[], $2::text[]) as f (alarm_id, reason)
