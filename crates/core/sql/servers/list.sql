-- Every server known, for people. Locks nothing.
-- The table has a row per server, so it is read whole.
select id, name, version, engine, engine_up, claiming, started_at, seen_at, lease_until > now() as alive
from stationmaster_internal.servers
order by started_at, id
limit 1000
