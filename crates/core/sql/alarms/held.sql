-- Which claims still stand under their tokens: those that a settlement passed by because somebody held a row of theirs. The
-- others are not ours any more. Called by the settler when something was not settled. Locks nothing.
-- Index: occurrences_open_pkey. $1 alarms, $2 nominal instants, $3 tokens.
select o.alarm_id, o.scheduled_for
from unnest($1::uuid[], $2::timestamptz[], $3::bigint[]) as a (alarm_id, scheduled_for, token)
join stationmaster_internal.occurrences_open o
  on o.alarm_id = a.alarm_id and o.scheduled_for = a.scheduled_for and o.token = a.token
