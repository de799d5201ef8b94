-- Of runs that the engine holds open, those that ended long ago by our own record. Called by the reconciler, from the
-- engine's side. What we have no record of is never in the answer: it is not ours. Locks nothing.
-- Index: executions_finished_pkey. $1 executions, $2 ended at least these seconds ago.
select execution_id, status, workspace_id
from stationmaster_internal.executions_finished
where execution_id = any ($1) and finished_at < now() - make_interval(secs => $2)
