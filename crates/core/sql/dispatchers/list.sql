-- Dispatchers with their inbox and their servers, for people. Locks nothing.
-- The table has a row per dispatcher, so it is read whole. Names are told of servers that are gone too. Index: server_names_pkey. $1 only this one, $2 project, $3 how many,
-- $4 only of projects of these workspaces, $5 after this id (null: any).
select d.id, d.project, d.task_queue, d.owner, o.name as owner_name, d.epoch, d.lease_until,
       case when d.lease_until > now() and d.handed_over_at is null then 'owned'
            when d.resting_since is not null and w.waiting = 0 then 'resting' else 'vacant' end as state, d.engine, d.run_id, d.taken_at, d.run_started_at, d.removal_wished_at as removal_requested_at,
       w.waiting, w.oldest as oldest_waiting_at, h.beat_at as heartbeat_at, h.epoch as heartbeat_epoch,
       coalesce(r.servers, '[]')::text as servers
from stationmaster.dispatchers d
left join stationmaster_internal.server_names o on o.id = d.owner
left join stationmaster_internal.dispatcher_heartbeats h on h.dispatcher_id = d.id
cross join lateral (
    select count(*) as waiting, min(p.received_at) as oldest
    from (select received_at from stationmaster_internal.signals_pending s where s.dispatcher_id = d.id order by seq limit 1000) p
) w
left join lateral (
    select jsonb_agg(jsonb_build_object('server_id', s.server_id, 'name', n.name, 'task_queue', s.task_queue,
                                        'registered_at', s.registered_at,
                                        'alive', coalesce(v.lease_until > now(), false)) order by s.registered_at) as servers
    from stationmaster_internal.dispatcher_servers s
    left join stationmaster_internal.servers v on v.id = s.server_id
    left join stationmaster_internal.server_names n on n.id = s.server_id
    where s.dispatcher_id = d.id
) r on true
where ($1::text is null or d.id = $1) and ($2::text is null or d.project = $2)
  and ($4::uuid[] is null or d.project in (select p.name from stationmaster.projects p where p.workspace_id = any ($4)))
  and ($5::text is null or d.id > $5)
order by d.id
limit $3
