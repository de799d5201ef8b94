-- Gives a recipient its next secret; the one before counts for a while beside it. Called by people's operations.
-- Locks the row. Index: wake_keys_pkey. $1 recipient, $2 for how long, in seconds, $3 the generation after the first.
insert into stationmaster_internal.wake_keys as k (target, generation, previous_until)
values ($1, $3, now() + make_interval(secs => $2))
on conflict (target) do update
    set generation = k.generation + 1, rotated_at = now(), previous_until = excluded.previous_until
returning generation
