-- How many servers are on record, by whether their lease holds. Called when metrics are asked for. Locks nothing. The table has a row per
-- server, so it is read whole.
select count(*) filter (where lease_until > clock_timestamp())::double precision as live,
       count(*) filter (where lease_until <= clock_timestamp())::double precision as lost
from stationmaster_internal.servers
