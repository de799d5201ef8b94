-- In how many seconds the next lease of another server runs out, unless it is renewed; null: nobody else has one. Called by
-- every server that stands by.
-- Locks nothing. The table has a row per dispatcher, so it is read whole. $1 server.
select extract(epoch from min(lease_until) - now())::double precision
from stationmaster.dispatchers
where owner is distinct from $1 and lease_until > now()
