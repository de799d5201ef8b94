-- Removes the heartbeat of one epoch and server, and no other. Called by the supervisor and by an owner that leaves.
-- Locks the row. Index: dispatcher_heartbeats_pkey. $1 dispatcher, $2 epoch, $3 server.
delete from stationmaster_internal.dispatcher_heartbeats
where dispatcher_id = $1 and epoch = $2 and server_id = $3
returning dispatcher_id
