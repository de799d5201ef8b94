-- How occurrences of an alarm stand, for those that are on record. Called before a backfill. Locks nothing.
-- Index: occurrences_open_pkey, occurrences_finished_pkey. $1 alarm, $2 nominal instants.
select scheduled_for, status
from stationmaster.alarm_occurrences
where alarm_id = $1 and scheduled_for = any ($2::timestamptz[]) and until is null
