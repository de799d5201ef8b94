-- Registrations of servers that have not been heard of, with dispatchers that nobody owns, so that nobody else evicts them: taken away,
-- with one event for each dispatcher; or only found. Called by the supervisor. Locks the registrations.
-- Index: dispatcher_servers_pkey, servers_pkey. $1 silent for these seconds, $2 take them away, $3 actor, $4 trace.
with gone as materialized (
    select r.dispatcher_id, r.server_id
    from stationmaster_internal.dispatcher_servers r
    join stationmaster.dispatchers d on d.id = r.dispatcher_id
    where (d.lease_until > now() and d.handed_over_at is null) is not true
      and r.registered_at < now() - make_interval(secs => $1)
      and not exists (select from stationmaster_internal.servers s
                      where s.id = r.server_id and s.seen_at >= now() - make_interval(secs => $1))
), evicted as (
    delete from stationmaster_internal.dispatcher_servers r
    using gone g
    where $2 and r.dispatcher_id = g.dispatcher_id and r.server_id = g.server_id
    returning r.dispatcher_id, r.server_id
), batches as materialized (
    select e.dispatcher_id, array_agg(e.server_id order by e.server_id) as servers
    from (select dispatcher_id, server_id from evicted
          union all
          select dispatcher_id, server_id from gone where not $2) e
    group by e.dispatcher_id
)
select b.dispatcher_id, b.servers,
       case when $2 then stationmaster_internal.tell_of_dispatcher(b.dispatcher_id, 'servers_evicted', null, null, null, $3,
                                                                    jsonb_build_object('servers', b.servers), $4) end as told
from batches b
order by b.dispatcher_id
