-- The rows of a page of occurrences, from its candidates. Called for people. Locks nothing. Index: occurrences_open_pkey,
-- occurrences_finished_pkey, occurrence_ranges_by_alarm. $1 alarm, $2 status (null: any), $3 nominal instants, $4 how many.
select alarm_id, scheduled_for, status, origin, attempts, recoveries, last_error, fired_at, reason, retry_at, due_at, finished_at,
       answer_status, answer, note, covers, until
from stationmaster.alarm_occurrences
where alarm_id = $1 and ($2::text is null or status = $2) and scheduled_for = any ($3)
order by scheduled_for desc
limit $4
