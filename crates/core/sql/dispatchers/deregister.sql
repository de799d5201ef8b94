-- A server leaves in good order: it stands by nothing any more. Called at the end of a shutdown.
-- Locks its own rows. Index: dispatcher_servers_by_server. $1 server.
delete from stationmaster_internal.dispatcher_servers
where server_id = $1
returning dispatcher_id
