-- The recipients whose secrets were rotated, for people; the secrets are not here. Locks nothing.
-- Index: wake_keys_pkey.
select target, generation, rotated_at, previous_until
from stationmaster_internal.wake_keys
order by target
limit 10000
