-- Pauses an active alarm: its series makes nothing more. What is open is parked by the turns that are given next. What is
-- being delivered at this moment is settled by its server. Called by people's operations; the caller has locked the alarm.
-- Index: alarm_standings_pkey. $1 alarm.
update stationmaster_internal.alarm_standings
set status = 'paused', next_due_at = null
where alarm_id = $1 and status = 'active'
