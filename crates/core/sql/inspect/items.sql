-- Items, newest first, for people. Locks nothing. Planned anew for each filter, so that a fixed status reads one table.
-- $1 workspace, $2 definition, $3 status (null: any), $4 before this id, $5 how many, $6 only this id (null: any).
select id, workspace_id, workflow_definition_id, execution_id, status, priority, run_at, attempt_count, recovery_count,
       created_at, claimed_at, dispatched_at, last_error, idempotency_key, correlation_id, enqueued_by, input::text as input
from stationmaster.workflow_execution_queue
where ($1::uuid is null or workspace_id = $1)
  and ($2::uuid is null or workflow_definition_id = $2)
  and ($3::text is null or status = $3)
  and id < $4
  and ($6::uuid is null or id = $6)
order by id desc
limit $5
