-- Ends an execution that waits in the queue for another start as somebody has said: its run was lost, or given back, before it could be
-- ended. No slot is held, so none is freed. Called by the canceller. Locks the pending row. Index: queue_pending_by_execution.
-- $1 execution, $2 status, $3 reason, $4 output, $5 error, $6 who says so. Answers the item and its workspace; nothing: it does not wait.
with taken as (
    delete from stationmaster_internal.queue_pending
    where execution_id = $1
    returning *
), recorded as (
    insert into stationmaster_internal.executions_finished
        (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status, status, reason,
         attempts, recoveries, dispatched_at, finished_at, finished_by, error, output)
    select execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, 'DISPATCHED', $2, $3,
           attempts, recoveries, clock_timestamp(), clock_timestamp() + interval '1 microsecond', $6, $5::jsonb, $4::jsonb
    from taken
)
select item_id, workspace_id
from taken
