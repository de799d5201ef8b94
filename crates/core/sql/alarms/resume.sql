-- Makes a paused alarm active again. What was parked with it is let go by the turns that are given next. Called by people's
-- operations, before the alarm is planned anew; the caller has locked the alarm. Index: alarm_standings_pkey. $1 alarm.
update stationmaster_internal.alarm_standings
set status = 'active', failed_in_a_row = 0
where alarm_id = $1 and status = 'paused'
