-- Takes servers off a dispatcher's list that have not been heard of, and tells of all of them in one event. Only under the epoch of the
-- owner, and only those that are still silent. Called by the dispatcher. Locks the dispatcher's row (shared), then the registrations.
-- Index: dispatchers_pkey, dispatcher_servers_pkey. $1 dispatcher, $2 epoch, $3 owner, $4 servers, $5 silent for these seconds,
-- $6 trace.
with mine as materialized (
    select id
    from stationmaster.dispatchers
    where id = $1 and epoch = $2 and owner = $3 and handed_over_at is null
    for share
), evicted as (
    delete from stationmaster_internal.dispatcher_servers r
    where r.dispatcher_id = $1 and r.server_id = any ($4) and exists (select from mine)
      and not exists (select from stationmaster_internal.servers s
                      where s.id = r.server_id and s.seen_at >= now() - make_interval(secs => $5))
    returning r.server_id
), batch as materialized (
    select coalesce(array_agg(e.server_id order by e.server_id), '{}') as servers
    from evicted e
), told as materialized (
    select stationmaster_internal.tell_of_dispatcher($1, 'servers_evicted', $2, null, null, $3::text,
                                                     jsonb_build_object('servers', b.servers), $6) as id
    from batch b
    where cardinality(b.servers) > 0
)
select exists (select from mine) as held, b.servers as evicted
from batch b
left join told t on t.id > 0
