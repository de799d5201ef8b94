-- Which generation of secret a target has, and whether the one before still counts. Called before a wake, remembered for a few
-- seconds. Locks nothing. Index: wake_keys_pkey. $1 target.
select generation, previous_until > now() as previous
from stationmaster_internal.wake_keys
where target = $1
