-- The rows of a page of occurrences, from its candidates. Called for people. Locks nothing. Index: occurrences_open_pkey,
-- occurrences_finished_pkey, occurrence_ranges_by_alarm. $1 alarm, $2 status (null: any), $3 nominal instants, $4 how many.
select alarm_id, scheduled_for, status, origin, attempts, recoveries, last_error, fired_at, reason, retry_at, due_at, finished_at,
       answer_status, answer, note, covers, until
from unnest($3::timestamptz[]) as candidate (candidate_at)
-- From each candidate to its rows and no other way, however few rows the planner expects of the status: `offset` holds it to that.
cross join lateral (
    select *
    from stationmaster.alarm_occurrences o
    where o.alarm_id = $1 and o.scheduled_for = candidate_at and ($2::text is null or o.status = $2)
    offset 0) found
order by scheduled_for desc
limit $4
