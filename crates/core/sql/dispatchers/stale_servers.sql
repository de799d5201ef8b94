-- Servers that are registered with a dispatcher and have not been heard of for a while. Called by the dispatcher's self-check.
-- Locks nothing. Index: dispatcher_servers_pkey, servers_pkey. $1 dispatcher, $2 after how many seconds.
select r.server_id
from stationmaster_internal.dispatcher_servers r
left join stationmaster_internal.servers s on s.id = r.server_id
where r.dispatcher_id = $1 and r.registered_at < now() - make_interval(secs => $2)
  and (s.id is null or s.seen_at < now() - make_interval(secs => $2))
order by r.server_id
