-- Nominal instants of an alarm that may be on a page, newest first. Called for people. Locks nothing.
-- Index: occurrences_open_pkey, occurrences_finished_pkey, occurrence_ranges_by_alarm.
-- $1 alarm, $2 before this nominal instant, $3 how many.
select scheduled_for
from ((select o.scheduled_for
       from stationmaster_internal.occurrences_open o
       where o.alarm_id = $1 and o.scheduled_for < $2
       order by o.scheduled_for desc
       limit $3)
      union
      (select f.scheduled_for
       from stationmaster_internal.occurrences_finished f
       where f.alarm_id = $1 and f.scheduled_for < $2
       order by f.scheduled_for desc
       limit $3)
      union
      (select r.scheduled_for
       from stationmaster_internal.occurrence_ranges r
       where r.alarm_id = $1 and r.scheduled_for < $2
       order by r.scheduled_for desc
       limit $3)) candidates
order by scheduled_for desc
limit $3
