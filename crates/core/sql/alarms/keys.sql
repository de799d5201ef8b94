-- Which generation of secret a recipient has, and whether the one before still counts; nothing when it was never rotated. Called
-- before a wake, remembered for a few seconds. Locks nothing. Index: wake_keys_pkey. $1 recipient.
select generation, previous_until > now() as previous
from stationmaster_internal.wake_keys
where target = $1
