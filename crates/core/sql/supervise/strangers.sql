-- Registrations of servers that have not been heard of, with dispatchers that nobody owns, so that nobody else evicts them.
-- Called by the supervisor. Locks the registrations. Index: dispatcher_servers_pkey, servers_pkey. $1 silent for these seconds.
delete from stationmaster_internal.dispatcher_servers r
using stationmaster.dispatchers d
where d.id = r.dispatcher_id and (d.lease_until > now() and d.handed_over_at is null) is not true
  and r.registered_at < now() - make_interval(secs => $1)
  and not exists (select from stationmaster_internal.servers s where s.id = r.server_id and s.seen_at >= now() - make_interval(secs => $1))
returning r.dispatcher_id, r.server_id
