-- Retires an engine. Called by `engine change`, under the lock of the row.
-- Locks the row. Index: engines_pkey. $1 engine.
update stationmaster_internal.engines
set retired_at = clock_timestamp()
where id = $1
