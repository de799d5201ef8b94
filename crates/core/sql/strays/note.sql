-- Notes runs that no row tells of, each with a line of the audit, which listeners are told too. A run for a workspace that is not there is
-- somebody else's, and is left alone. Called by the reconciler, at the second look. Locks nothing. Index: workspaces_pkey, stray_runs_pkey.
-- $1 runs, $2 executions, $3 workspaces, $4 when they were started, $5 the engine, $6 who says so. Answers what is new.
with noted as (
    insert into stationmaster_internal.stray_runs (run_id, execution_id, workspace_id, engine_id, started_at)
    select t.run_id, t.execution_id, t.workspace_id, $5, t.started_at
    from unnest($1::text[], $2::uuid[], $3::uuid[], $4::timestamptz[]) as t (run_id, execution_id, workspace_id, started_at)
    join stationmaster.workspaces w on w.id = t.workspace_id
    order by t.run_id
    on conflict (run_id) do nothing
    returning run_id, execution_id, workspace_id, started_at
), told as (
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    select $6, 'execution.stray', workspace_id, execution_id::text, jsonb_build_object('run_id', run_id, 'started_at', started_at)
    from noted
)
select execution_id, run_id, workspace_id
from noted
