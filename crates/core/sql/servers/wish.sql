-- Puts down what somebody wishes of a server that is there: to take no new work (drain), to leave as well (exit), or neither. It finds out by
-- its next heartbeat. Called by people. Locks the server's row. Index: servers_pkey. $1 server, $2 wish (null: none any more).
update stationmaster_internal.servers
set wish = $2
where id = $1 and lease_until > now()
returning name
