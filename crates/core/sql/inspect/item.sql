-- One item, for people. Called by the API and the command line. Locks nothing.
-- Index: the primary keys, executions_active_again, executions_finished_again. $1 item.
select id, workspace_id, workflow_definition_id, execution_id, status, priority, run_at, attempt_count, recovery_count,
       created_at, claimed_at, dispatched_at, last_error, idempotency_key, correlation_id, enqueued_by, input::text as input
from stationmaster.workflow_execution_queue
where id = $1
