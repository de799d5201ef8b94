-- Gives the turns of alarms anew: which of their open occurrences may be claimed, and whether their series wait. Called after whatever
-- may have changed that: a pause, a resume, an edit, a recovery. The caller has locked the alarms.
-- Locks open rows. Index: occurrences_open_pkey. $1 alarms.
select stationmaster_internal.give_turns(a.alarm_id)
from unnest($1::uuid[]) as a (alarm_id)
