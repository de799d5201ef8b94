-- Executions, newest first, for people. Locks nothing. Planned anew for each filter.
-- $1 workspace, $2 definition, $3 status (null: any), $4 before this id, $5 how many, $6 only this id (null: any).
select id, queue_item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, status, started_at,
       completed_at, error::text as error, output::text as output, input::text as input, claimed_at, engine, run_id,
       reason, attempts, recoveries
from stationmaster.workflow_executions
where ($1::uuid is null or workspace_id = $1)
  and ($2::uuid is null or workflow_definition_id = $2)
  and ($3::text is null or status = $3)
  and id < $4
  and ($6::uuid is null or id = $6)
order by id desc
limit $5
