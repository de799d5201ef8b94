-- Writes down occurrences that will not fire, each with its reason. Called by a claim that moves a series past them, in its
-- transaction. Locks nothing that exists. Index: occurrences_finished_pkey.
-- $1 alarms, $2 nominal instants (the first of a row of them), $3 the first instant after it (null: it is one), $4 how many, $5 statuses, $6 reasons.
insert into stationmaster.occurrences_finished
    (alarm_id, scheduled_for, origin, status, reason, due_at, covers, until)
select m.alarm_id, m.scheduled_for, 'schedule', m.status, m.reason, m.scheduled_for, m.covers, m.until
from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[])
    as m (alarm_id, scheduled_for, until, covers, status, reason)
on conflict do nothing
