-- Who does the work that one server does for all, under which token. Called by `health::duties`. Locks nothing.
-- The table has a row per duty, so it is read whole.
select d.name, d.token as epoch, d.lease_until > now() as held, s.name as server,
       coalesce(s.lease_until > now(), false) as alive
from stationmaster_internal.duties d
left join stationmaster_internal.servers s on s.id = d.holder
order by d.name
limit 100
