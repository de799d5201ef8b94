-- Of runs that the engine holds open, those that no row of ours tells of, and whether they are noted as strays already. Rows are read after
-- the engine was asked: what is started has been committed before, so a run that is missing here was lost, pruned, or is somebody else's.
-- Called by the reconciler, and by whoever ends a stray. Locks nothing.
-- Index: executions_active_pkey, queue_items_pkey, executions_finished_pkey, queue_pending_by_execution, stray_runs_pkey.
-- $1 executions, $2 their runs.
select t.execution_id, t.run_id, exists (select from stationmaster_internal.stray_runs s where s.run_id = t.run_id) as is_noted
from unnest($1::uuid[], $2::text[]) as t (execution_id, run_id)
where not exists (select from stationmaster_internal.executions_active a where a.execution_id = t.execution_id)
  and not exists (select from stationmaster_internal.queue_items i where i.id = t.execution_id)
  and not exists (select from stationmaster_internal.executions_finished f where f.execution_id = t.execution_id)
  and not exists (select from stationmaster_internal.queue_pending p where p.execution_id = t.execution_id)
