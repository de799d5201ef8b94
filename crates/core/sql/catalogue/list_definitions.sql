-- Workflow definitions with their newest version. Locks nothing. Index: workflow_definitions_pkey.
-- $1 only this one (null: all), $2 only of these workspaces (null: all), $3 after this id, $4 how many.
select d.id, d.workspace_id, w.name as workspace, d.name, d.task_queue, d.workflow_type, d.max_attempts, d.published_version, d.paused,
       v.version as current_version, v.workflow::text as graph, d.created_at, d.updated_at,
       extract(epoch from d.run_timeout)::double precision as run_timeout
from stationmaster.workflow_definitions d
join stationmaster.workspaces w on w.id = d.workspace_id
left join stationmaster.workflow_definition_versions v on v.id = d.current_version_id
where ($1::uuid is null or d.id = $1) and ($2::uuid[] is null or d.workspace_id = any ($2)) and d.id > $3
order by d.id
limit $4
