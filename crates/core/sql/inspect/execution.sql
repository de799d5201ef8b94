-- One execution, for people. Called by the API and the command line. Locks nothing.
-- Index: the primary keys, queue_pending_by_execution. $1 execution.
select id, queue_item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, status, started_at,
       completed_at, error::text as error, output::text as output, input::text as input, claimed_at, engine, run_id,
       reason, attempts, recoveries
from stationmaster.workflow_executions
where id = $1
