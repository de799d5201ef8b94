-- Operations, newest first. Called by the API. Locks nothing. Planned anew for each filter. Index: operations_pkey.
-- $1 statuses (null: any), $2 kind (null: any), $3 from this id, $4 up to and with this id, $5 how many.
select id, kind, filter, workspaces, status, as_of, total, total_is_least, done, unchanged, created_at, created_by, started_at, server, ended_at,
       ended_by, error
from stationmaster.operations
where ($1::text[] is null or status = any ($1)) and ($2::text is null or kind = $2) and id between $3 and $4
order by id desc
limit $5
