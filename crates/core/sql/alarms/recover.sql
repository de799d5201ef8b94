-- Takes wakes out of the hands of servers that are not there any more: they may be claimed again at once. What the target
-- was asked is not known, so it is asked again, under the same id. Called by recovery, every second.
-- Locks open rows, skipping what others hold. Index: occurrences_open_held. $1 how many.
with lost as materialized (
    select o.alarm_id, o.scheduled_for
    from stationmaster_internal.occurrences_open o
    where o.holder is not null
      and not exists (select from stationmaster_internal.servers s where s.id = o.holder and s.lease_until > now())
    order by o.alarm_id, o.scheduled_for
    limit $1
    for update skip locked
)
update stationmaster_internal.occurrences_open o
set holder = null, token = null, claimed_at = null, ready_at = clock_timestamp(), recoveries = o.recoveries + 1
from lost l
where o.alarm_id = l.alarm_id and o.scheduled_for = l.scheduled_for
returning o.alarm_id, o.scheduled_for
