-- Writes down that a server begins with an operation, or goes on with one of a server that is gone. Called by the server that has the duty.
-- Locks the row. Index: operations_pkey. $1 operation, $2 the step that is known, $3 server, $4 how many are changed at least. Answers the step.
update stationmaster_internal.operations
set step = step + 1, server_id = $3, status = 'RUNNING', started_at = coalesce(started_at, clock_timestamp()), done = greatest(done, $4)
where id = $1 and step = $2 and ended_at is null
returning step
