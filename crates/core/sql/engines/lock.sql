-- The engine on record under this name, for whoever is about to put another one in its place. Called by `engine change`.
-- Locks the row. Index: engines_current. $1 name.
select id, identity, place
from stationmaster_internal.engines
where name = $1 and retired_at is null
for update
