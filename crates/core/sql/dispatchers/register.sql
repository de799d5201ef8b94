-- Registers a server as standing by every dispatcher that does not rest and that it is not registered with yet. Called by every server, now and then.
-- Index: dispatcher_servers_pkey. $1 server, $2 the task queue that it polls.
insert into stationmaster_internal.dispatcher_servers (dispatcher_id, server_id, task_queue)
select d.id, $1, $2
from stationmaster.dispatchers d
where d.resting_since is null
  and not exists (select from stationmaster_internal.dispatcher_servers s where s.dispatcher_id = d.id and s.server_id = $1)
order by d.id
on conflict do nothing
returning dispatcher_id
