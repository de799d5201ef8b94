-- The workspace of an item, or of an execution by its id. Called by operations, for the audit. Locks nothing.
-- Index: queue_items_pkey, executions_active_pkey, executions_finished_pkey, queue_pending_by_execution. $1 item or execution.
select workspace_id from stationmaster_internal.queue_items where id = $1
union all
select workspace_id from stationmaster_internal.executions_active where execution_id = $1
union all
select workspace_id from stationmaster_internal.executions_finished where execution_id = $1
union all
select workspace_id from stationmaster_internal.queue_pending where execution_id = $1
limit 1
