-- Removes a dispatcher that was told of (tell_removed.sql). Called by its last owner, in the same transaction. Locks the row.
-- Index: dispatchers_pkey. $1 dispatcher, $2 epoch.
delete from stationmaster.dispatchers
where id = $1 and epoch = $2
