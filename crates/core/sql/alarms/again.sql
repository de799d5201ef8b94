-- Opens failed occurrences of an alarm again, to be fired now under their old ids; an alarm that had ended because of them goes on until they
-- are settled. Called by retries of failures; the caller has locked the alarm. Locks finished rows.
-- Index: occurrences_finished_pkey, occurrences_open_pkey. $1 alarm, $2 nominal instants. Answers those that are open.
with back as (
    delete from stationmaster_internal.occurrences_finished f
    where f.alarm_id = $1 and f.scheduled_for = any ($2::timestamptz[]) and f.status = 'failed'
    returning f.scheduled_for, f.origin, f.note
), opened as (
    insert into stationmaster_internal.occurrences_open (alarm_id, scheduled_for, origin, due_at, ready_at, note)
    select $1, scheduled_for, origin, clock_timestamp(), clock_timestamp(), note
    from back
    order by scheduled_for
    on conflict do nothing
    returning scheduled_for
), stands as (
    update stationmaster_internal.alarm_standings
    set status = 'active', ended_at = null
    where alarm_id = $1 and status = 'failed' and exists (select from back)
)
select scheduled_for
from opened
