-- Writes down occurrences that will not fire, each with its reason; a long row of them as one line. Called by a claim that
-- moves a series past them, and by a resume, in their transactions. Locks nothing that exists. Index: occurrences_finished_pkey.
-- $1 alarms, $2 nominal instants (of a row: the first), $3 the first instant after the row (null: it is one), $4 how many
-- (null: very many), $5 statuses, $6 reasons.
with missed as (
    select *
    from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[])
        as m (alarm_id, scheduled_for, until, covers, status, reason)
), ranges as (
    insert into stationmaster_internal.occurrence_ranges (alarm_id, scheduled_for, until, covers, status, reason)
    select alarm_id, scheduled_for, until, covers, status, reason
    from missed
    where until is not null
)
insert into stationmaster_internal.occurrences_finished (alarm_id, scheduled_for, origin, status, reason, due_at)
select alarm_id, scheduled_for, 'schedule', status, reason, scheduled_for
from missed
where until is null
on conflict do nothing
