-- The servers that are registered with a dispatcher. Called by its self-check, for those that its run was never told of.
-- Locks nothing. Index: dispatcher_servers_pkey. $1 dispatcher.
select server_id, task_queue
from stationmaster_internal.dispatcher_servers
where dispatcher_id = $1
order by server_id
limit 1000
