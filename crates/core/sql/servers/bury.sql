-- Forgets a dead server once nothing is left in its hands. Called by recovery, after it has adopted everything.
-- Locks the server's row. Index: servers_pkey; the check reads the active table, which is small.
-- $1 servers, $2 engines whose runs end with their server.
delete from stationmaster_internal.servers s
where s.id = any ($1) and s.lease_until <= now()
  and not exists (select from stationmaster_internal.executions_active a
                  where a.holder = s.id and (a.state = 'STARTING' or a.engine = any ($2)))
returning s.id, s.name
