-- The rows of a page of executions, from its candidates and in their order; or one of them alone. Locks nothing. Index: the primary keys, queue_pending_by_execution.
-- $1 candidates, $2 definition, $3 status, $4 pattern in input or error (null: any), $5 how many.
select id, queue_item_id, workspace_id, (select w.name from stationmaster.workspaces w where w.id = workspace_id) as workspace,
       workflow_definition_id, (select d.name from stationmaster.workflow_definitions d where d.id = workflow_definition_id) as workflow,
       workflow_definition_version_id, status, started_at,
       completed_at, error::text as error, output::text as output, input::text as input, claimed_at, engine, run_id,
       reason, attempts, recoveries, closed_at, superseded_at, output_omitted::text as output_omitted
from stationmaster.workflow_executions
join unnest($1::uuid[]) with ordinality as chosen (candidate, place) on candidate = id
where id = any ($1)
  and ($2::uuid is null or workflow_definition_id = $2)
  and ($3::text is null or status = $3)
  and ($4::text is null or input::text ilike $4 or error::text ilike $4)
order by place
limit $5
