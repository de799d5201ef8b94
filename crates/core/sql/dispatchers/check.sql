-- A dispatcher's self-check, in one look: does this epoch still own it, who is registered with it (also those that its run was never told
-- of), and which of them have not been heard of for a while? Called by runs. Locks nothing.
-- Index: dispatchers_pkey, dispatcher_servers_pkey, servers_pkey.
-- $1 dispatcher, $2 epoch, $3 owner, $4 after how many seconds.
select exists (select from stationmaster.dispatchers
               where id = $1 and epoch = $2 and owner = $3 and handed_over_at is null and lease_until > now()) as held,
       coalesce(array_agg(r.server_id order by r.server_id), '{}') as servers,
       coalesce(array_agg(r.task_queue order by r.server_id), '{}') as task_queues,
       coalesce(array_agg(r.server_id order by r.server_id) filter (where r.silent), '{}') as silent
from (
    select d.server_id, d.task_queue,
           d.registered_at < now() - make_interval(secs => $4)
               and (s.id is null or s.seen_at < now() - make_interval(secs => $4)) as silent
    from stationmaster_internal.dispatcher_servers d
    left join stationmaster_internal.servers s on s.id = d.server_id
    where d.dispatcher_id = $1
    order by d.server_id
    limit 1000
) r
