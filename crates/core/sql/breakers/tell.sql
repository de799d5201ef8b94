-- Which targets do not answer a server, instead of all that it said before. Called by recovery of alarms, when a breaker has opened or closed.
-- Locks the server's own rows. Index: target_breakers_pkey, servers_pkey. A server that is not there any more says nothing.
-- $1 server, $2 targets, $3 for how many seconds each has not answered.
with closed as (
    delete from stationmaster_internal.target_breakers b
    where b.server_id = $1 and b.target <> all ($2)
)
insert into stationmaster_internal.target_breakers (server_id, target, opened_at)
select s.id, o.target, now() - make_interval(secs => o.seconds)
from stationmaster_internal.servers s
cross join unnest($2::text[], $3::double precision[]) as o (target, seconds)
where s.id = $1
on conflict (server_id, target) do nothing
