-- Servers whose heartbeat has run out. Called by recovery. Locks nothing.
-- The table has a row per server, so it is read whole.
select id, name
from stationmaster_internal.servers
where lease_until <= now()
order by id
limit 100
