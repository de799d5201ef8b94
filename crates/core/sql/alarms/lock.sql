-- Locks one alarm for a change by hand, and says how it stands. Called in the transactions of people's operations.
-- Locks its row of alarm_standings; claims and settlements pass by meanwhile. Index: alarm_standings_pkey. $1 alarm.
select s.status, s.next_fire_at, s.follows_at, now() as now,
       exists (select from stationmaster_internal.occurrences_open o where o.alarm_id = s.alarm_id and o.origin = 'schedule') as under_way
from stationmaster_internal.alarm_standings s
where s.alarm_id = $1
for update of s
