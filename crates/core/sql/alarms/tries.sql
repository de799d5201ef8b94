-- The failed tries of an occurrence, oldest first, for people. Locks nothing.
-- Index: occurrence_tries_by_occurrence. $1 alarm, $2 nominal instant.
select attempt, at, class, answer_status, answer, error
from stationmaster_internal.occurrence_tries
where alarm_id = $1 and scheduled_for = $2
order by id
limit 1000
