-- Pauses an active alarm: nothing more of it is claimed. What is being delivered at this moment is settled by its server.
-- Called by people's operations; the caller has locked the alarm. Locks its open rows, skipping what servers hold.
-- Index: occurrences_open_pkey. $1 alarm.
with parked as (
    update stationmaster_internal.occurrences_open o
    set ready_at = 'infinity'
    where o.alarm_id = $1
      and o.scheduled_for = any (array(select p.scheduled_for from stationmaster_internal.occurrences_open p
                                       where p.alarm_id = $1 and p.holder is null and p.origin = 'schedule'
                                       order by p.scheduled_for for update skip locked))
)
update stationmaster_internal.alarm_standings
set status = 'paused', next_due_at = null
where alarm_id = $1 and status = 'active'
