-- Triggers in the order of their names, with the workspace of each. Called for people. Locks nothing. Index: triggers_pkey.
-- $1 project, $2 only this task queue, $3 only this name, $4 only of these workspaces, $5 how many,
-- $6, $7, $8 after this project, task queue and name (null: from the first on).
select t.project, nullif(t.task_queue, '') as task_queue, t.name, t.workflow_definition_id, d.name as workflow, p.workspace_id,
       w.name as workspace,
       t.payload_schema::text as payload_schema, t.priority, t.created_at, t.updated_at
from stationmaster.triggers t
join stationmaster.projects p on p.name = t.project
left join stationmaster.workflow_definitions d on d.id = t.workflow_definition_id
left join stationmaster.workspaces w on w.id = p.workspace_id
where ($1::text is null or t.project = $1) and ($2::text is null or t.task_queue = $2) and ($3::text is null or t.name = $3)
  and ($4::uuid[] is null or p.workspace_id = any ($4))
  and ($6::text is null or (t.project, t.task_queue, t.name) > ($6, $7::text, $8::text))
order by t.project, t.task_queue, t.name
limit $5
