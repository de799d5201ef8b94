-- Makes a paused alarm active again and lets go what was parked with it: everything, or the earliest where occurrences take
-- turns. Called by people's operations, before the alarm is planned anew; the caller has locked the alarm.
-- Locks its open rows. Index: occurrences_open_pkey. $1 alarm.
with freed as (
    update stationmaster_internal.occurrences_open o
    set ready_at = clock_timestamp()
    from stationmaster_internal.alarm_definitions d
    where d.id = $1 and o.alarm_id = $1 and o.holder is null and o.ready_at = 'infinity'
      and (d.overlap = 'allow'
           or o.scheduled_for = (select min(w.scheduled_for) from stationmaster_internal.occurrences_open w
                                 where w.alarm_id = $1 and w.origin = 'schedule'))
)
update stationmaster_internal.alarm_standings
set status = 'active', failed_in_a_row = 0,
    held = held and exists (select from stationmaster_internal.occurrences_open o where o.alarm_id = $1 and o.origin = 'schedule')
where alarm_id = $1 and status = 'paused'
