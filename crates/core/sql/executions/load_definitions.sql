-- How definitions are to be run, at this moment; one that was deleted since the enqueue is said to be gone.
-- Called after the claim has committed. Locks nothing. Index: workflow_definitions_pkey, workspaces_pkey.
-- $1 definitions, $2 their workspaces.
select asked.id, d.task_queue, d.workflow_type, d.max_attempts,
       extract(epoch from d.run_timeout)::double precision as run_timeout, d.id is not null as exists,
       w.id is not null as workspace_exists
from unnest($1::uuid[], $2::uuid[]) as asked (id, workspace_id)
left join stationmaster.workflow_definitions d on d.id = asked.id
left join stationmaster.workspaces w on w.id = asked.workspace_id
