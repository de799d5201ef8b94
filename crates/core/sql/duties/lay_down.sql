-- Gives up every duty of a server that leaves, keeping tokens. Locks the duties' rows.
-- $1 server.
update stationmaster_internal.duties
set lease_until = '-infinity'
where holder = $1
