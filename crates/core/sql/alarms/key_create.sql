-- Gives a target a secret of its own; nothing when it has one. Called by people's operations.
-- Locks nothing that exists. Index: wake_keys_pkey. $1 target.
insert into stationmaster_internal.wake_keys (target)
values ($1)
on conflict do nothing
returning generation
