-- Executions that we say run on this very engine, a page at a time, leaving out what was only just dispatched.
-- Called by the reconciler. Locks nothing. Index: executions_active_pkey.
-- $1 after this execution, $2 younger than these seconds are left out, $3 how many, $4 the engine.
select execution_id, missing_since is not null as missing, run_id
from stationmaster_internal.executions_active
where execution_id > $1 and engine_id = $4 and state = 'RUNNING' and dispatched_at < now() - make_interval(secs => $2)
order by execution_id
limit $3
