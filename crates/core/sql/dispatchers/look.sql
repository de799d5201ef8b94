-- One look without a write: how many dispatchers are there that do not rest, is there a dispatcher that this server is not registered with, one that nobody owns
-- although it does not rest, is to be removed, or signals wait for it, and in how many
-- seconds does the next lease of another server run out unless it is renewed (null: nobody else has one)? Called by every server
-- that owns or stands by, before it writes. Locks nothing. The table has a row per dispatcher, so it is read whole.
-- Index: dispatcher_servers_pkey, signals_pending_by_dispatcher. $1 server.
select count(*) filter (where d.resting_since is null) as dispatchers,
       coalesce(bool_or(d.resting_since is null and not exists (select from stationmaster_internal.dispatcher_servers s
                                    where s.dispatcher_id = d.id and s.server_id = $1)), false) as unregistered,
       coalesce(bool_or((d.lease_until > now() and d.handed_over_at is null) is not true and (d.resting_since is null or (d.removal_wished_at is not null and d.resting_since < now() - interval '5 seconds') or exists (select from stationmaster_internal.signals_pending p where p.dispatcher_id = d.id))), false) as vacant,
       extract(epoch from min(d.lease_until) filter (where d.owner is distinct from $1 and d.lease_until > now())
                          - now())::double precision as next_vacancy
from stationmaster.dispatchers d
