-- Takes servers off a dispatcher's list that have not been heard of, and tells of each. Only under the epoch of the owner, and
-- only those that are still silent. Called by the dispatcher. Locks the dispatcher's row (shared), then the registrations.
-- Index: dispatchers_pkey, dispatcher_servers_pkey. $1 dispatcher, $2 epoch, $3 owner, $4 servers, $5 silent for these seconds.
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
)
select exists (select from mine) as held,
       array(select e.server_id from evicted e
             where stationmaster_internal.tell_of_dispatcher($1, 'server_evicted', $2, e.server_id, null, $3::text) > 0) as evicted
