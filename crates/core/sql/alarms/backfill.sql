-- Makes occurrences of the past, to be fired now. What was accepted or is under way is left alone; what was skipped, coalesced,
-- failed or cancelled is tried anew under its old id. Called by backfills; the caller has locked the alarm.
-- Locks finished rows. Index: occurrences_open_pkey, occurrences_finished_pkey. $1 alarm, $2 nominal instants, $3 notes.
with asked as (
    select *
    from unnest($2::timestamptz[], $3::text[]) as a (scheduled_for, note)
), again as (
    delete from stationmaster_internal.occurrences_finished f
    where f.alarm_id = $1 and f.scheduled_for = any ($2::timestamptz[]) and f.status <> 'fired'
)
insert into stationmaster_internal.occurrences_open (alarm_id, scheduled_for, origin, due_at, ready_at, note)
select $1, a.scheduled_for, 'backfill', clock_timestamp(), clock_timestamp(), a.note
from asked a
where not exists (select from stationmaster_internal.occurrences_finished f
                  where f.alarm_id = $1 and f.scheduled_for = a.scheduled_for and f.status = 'fired')
order by a.scheduled_for
on conflict do nothing
returning scheduled_for
