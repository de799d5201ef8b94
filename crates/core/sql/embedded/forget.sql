-- What the embedded engine remembers of executions that are over is of no use any more. Called by housekeeping.
-- Index: embedded_runs_pkey, executions_active_pkey, queue_pending_by_execution. $1 how many.
delete from stationmaster_internal.embedded_runs r
where r.execution_id = any (array(
    select m.execution_id
    from stationmaster_internal.embedded_runs m
    where not exists (select from stationmaster_internal.executions_active a where a.execution_id = m.execution_id)
      and not exists (select from stationmaster_internal.queue_pending p where p.execution_id = m.execution_id)
    limit $1))
