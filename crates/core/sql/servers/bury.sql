-- Forgets a dead server once nothing is left in its hands, and puts down that it was lost. Called by recovery, after it has adopted
-- everything. Locks the server's row and its record. Index: servers_pkey, server_names_pkey; the check reads the active table, which is
-- small. $1 servers, $2 engines whose runs end with their server.
with buried as (
    delete from stationmaster_internal.servers s
    where s.id = any ($1) and s.lease_until <= now()
      and not exists (select from stationmaster_internal.executions_active a
                      where a.holder = s.id and (a.state = 'STARTING' or a.engine = any ($2)))
    returning s.id, s.name, s.lease_until
), told as (
    update stationmaster_internal.server_names n
    set ended = 'lost', left_at = b.lease_until
    from buried b
    where n.id = b.id and n.ended is null
)
select id, name
from buried
