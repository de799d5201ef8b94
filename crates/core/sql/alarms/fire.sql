-- Makes an occurrence by hand, due now. Called by people's operations; the caller has locked the alarm.
-- Locks nothing that exists. Index: occurrences_open_pkey. $1 alarm. Answers its nominal instant.
insert into stationmaster_internal.occurrences_open (alarm_id, scheduled_for, origin, due_at, ready_at)
values ($1, clock_timestamp(), 'manual', clock_timestamp(), clock_timestamp())
returning scheduled_for
