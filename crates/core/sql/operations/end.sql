-- Ends an operation before it is done: somebody cancels it, or it cannot go on. What was done stays done. Called by the API and by the server
-- that has the duty. Locks the row. Index: operations_pkey. $1 operation, $2 CANCELLED or FAILED, $3 who cancels, $4 why it fails. Answers whether it was open.
update stationmaster_internal.operations
set status = $2, ended_at = clock_timestamp(), ended_by = $3, error = $4
where id = $1 and ended_at is null
