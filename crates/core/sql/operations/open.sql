-- The operation that is not over and has rested longest. Called by the server that has the duty. Locks nothing.
-- Index: operations_open.
select id, kind, request, workspaces, created_by, total, more, step, next, server_id
from stationmaster_internal.operations
where ended_at is null
order by moved_at, id
limit 1
