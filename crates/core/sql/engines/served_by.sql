-- The servers that live and work with an engine of this name. Called by `engine change`, under the lock of the engine's row: a
-- server registers before it asks for that row, so none is overlooked. Locks nothing; the table has a row per server.
-- $1 name.
select name
from stationmaster_internal.servers
where engine = $1 and lease_until > clock_timestamp()
order by name
