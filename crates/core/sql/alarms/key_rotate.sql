-- Gives a target its next secret; the one before counts for a while beside it. Called by people's operations.
-- Locks the row. Index: wake_keys_pkey. $1 target, $2 for how long, in seconds.
update stationmaster_internal.wake_keys
set generation = generation + 1, rotated_at = now(), previous_until = now() + make_interval(secs => $2)
where target = $1
returning generation
