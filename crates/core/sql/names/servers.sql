-- Servers that are there, by the beginning of their ids or of their names. Called by the API. Locks nothing. The table has a row per
-- server, so it is read whole.
-- $1 from this id, $2 to this id, $3 names that begin so, $4 not asked: they belong to no workspace, $5 how many.
select s.id, s.name, null::text as workspace
from stationmaster_internal.servers s
where s.lease_until > now() and s.id between $1 and $2 and starts_with(s.name, $3) and $4::uuid[] is not distinct from $4
order by s.name
limit $5
