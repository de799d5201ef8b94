-- Of runs that the engine holds open, those that ended by our own record: which run ended, whether the engine itself said so, whether a retry
-- followed, and whether it is long ago. Called by the reconciler, from the engine's side. What we have no record of is never in the
-- answer: it is not ours. Locks nothing.
-- Index: executions_finished_pkey. $1 executions, $2 long ago means at least these seconds.
select execution_id, status, workspace_id, run_id, closed_at is not null as told_by_engine, superseded_at is not null as retried,
       finished_at < now() - make_interval(secs => $2) as long_ago
from stationmaster_internal.executions_finished
where execution_id = any ($1)
