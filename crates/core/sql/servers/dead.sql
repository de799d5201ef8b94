-- Servers whose heartbeat has run out. Called by recovery. Locks nothing; the table has a row per server.
select id, name
from stationmaster.servers
where lease_until <= now()
order by id
limit 100
