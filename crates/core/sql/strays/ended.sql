-- A stray was ended as somebody wished: it is one no more, and the audit tells it, once. Called by the canceller. Locks the row.
-- Index: stray_runs_pkey. $1 run, $2 the server that ended it.
with gone as (
    delete from stationmaster_internal.stray_runs
    where run_id = $1
    returning run_id, execution_id, workspace_id, end_wished_by, end_reason
)
insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
select $2, 'execution.stray_ended', workspace_id, execution_id::text,
       jsonb_strip_nulls(jsonb_build_object('run_id', run_id, 'wished_by', end_wished_by, 'reason', end_reason))
from gone
