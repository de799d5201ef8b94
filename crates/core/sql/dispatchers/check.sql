-- The self-checks of dispatchers, in one look: does this epoch still own each, who is registered with it (also those that its run was
-- never told of), and which of them have not been heard of for a while? Called for runs. Locks nothing.
-- Index: dispatchers_pkey, dispatcher_servers_pkey, servers_pkey.
-- $1 dispatchers, $2 epochs, $3 owners, $4 after how many seconds.
select asked.id, asked.epoch,
       exists (select from stationmaster.dispatchers d
               where d.id = asked.id and d.epoch = asked.epoch and d.owner = asked.owner
                 and d.handed_over_at is null and d.lease_until > now()) as held,
       there.servers, there.task_queues, there.silent
from unnest($1::text[], $2::bigint[], $3::uuid[]) asked (id, epoch, owner)
cross join lateral (
    select coalesce(array_agg(r.server_id order by r.server_id), '{}') as servers,
           coalesce(array_agg(r.task_queue order by r.server_id), '{}') as task_queues,
           coalesce(array_agg(r.server_id order by r.server_id) filter (where r.silent), '{}') as silent
    from (
        select d.server_id, d.task_queue,
               d.registered_at < now() - make_interval(secs => $4)
                   and (s.id is null or s.seen_at < now() - make_interval(secs => $4)) as silent
        from stationmaster_internal.dispatcher_servers d
        left join stationmaster_internal.servers s on s.id = d.server_id
        where d.dispatcher_id = asked.id
        order by d.server_id
        limit 1000
    ) r
) there
