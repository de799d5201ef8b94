-- Takes wakes out of the hands of servers that are not there any more, and of those whose lease ran out while their alarm was paused
-- or cancelled (a claim leaves these at infinity). What the target was asked is not known, so it is asked again, under the same
-- id; unless its alarm was cancelled meanwhile: then it is over. Called by recovery, in a transaction that then gives turns.
-- Locks alarms and open rows, skipping what others hold. Index: occurrences_open_held, alarm_standings_pkey. Their records tell it.
-- $1 how many, $2 by whom.
with lost as materialized (
    select o.alarm_id, o.scheduled_for, s.status, o.holder
    from stationmaster_internal.occurrences_open o
    join stationmaster_internal.alarm_standings s on s.alarm_id = o.alarm_id
    where o.holder is not null
      and (o.ready_at = 'infinity'
           or not exists (select from stationmaster_internal.servers v where v.id = o.holder and v.lease_until > now()))
    order by o.alarm_id, o.scheduled_for
    limit $1
    for update of s skip locked
    for update of o skip locked
), gone as (
    delete from stationmaster_internal.occurrences_open o
    using lost l
    where o.alarm_id = l.alarm_id and o.scheduled_for = l.scheduled_for and l.status = 'cancelled'
    returning o.*
), ended as (
    insert into stationmaster_internal.occurrences_finished
        (alarm_id, scheduled_for, origin, status, reason, attempts, recoveries, due_at, last_error, note)
    select alarm_id, scheduled_for, origin, 'cancelled', 'its server was lost, and the alarm was cancelled', attempts, recoveries + 1,
           due_at, last_error, note
    from gone
    on conflict do nothing
), again as (
    update stationmaster_internal.occurrences_open o
    set holder = null, token = null, claimed_at = null, ready_at = clock_timestamp(), recoveries = o.recoveries + 1
    from lost l
    where o.alarm_id = l.alarm_id and o.scheduled_for = l.scheduled_for and l.status <> 'cancelled'
), told as (
    update stationmaster_internal.server_names n
    set recovered = n.recovered + h.wakes, recovered_by = $2
    from (select holder, count(*) as wakes from lost group by holder) h
    where n.id = h.holder
)
select alarm_id, scheduled_for
from lost
