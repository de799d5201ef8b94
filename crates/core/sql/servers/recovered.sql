-- Puts down what was taken out of the hands of servers, and by whom. Called by recovery. Locks their records. Index: server_names_pkey.
-- $1 servers, $2 how many of each, $3 by whom.
update stationmaster_internal.server_names n
set recovered = n.recovered + r.many, recovered_by = $3
from unnest($1::uuid[], $2::bigint[]) as r (id, many)
where n.id = r.id
