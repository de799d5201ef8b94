-- Workflows by the beginning of their ids or of their names. Called by the API to say what may have been meant. Locks nothing.
-- Index: workflow_definitions_pkey, workflow_definitions_by_name.
-- $1 from this id, $2 to this id, $3 names that begin so, $4 only of these workspaces (null: all), $5 how many.
select d.id, d.name, w.name as workspace
from stationmaster.workflow_definitions d
join stationmaster.workspaces w on w.id = d.workspace_id
where d.id between $1 and $2 and starts_with(d.name, $3) and ($4::uuid[] is null or d.workspace_id = any ($4))
order by d.name, w.name
limit $5
