-- Who holds the slots of a workspace, the longest first. Called by the API for an item that waits. Locks nothing. What runs is read
-- whole. Index: workflow_definitions_pkey, server_names_pkey. $1 workspace, $2 how many.
select a.execution_id, a.item_id as queue_item_id, a.workflow_definition_id,
       (select d.name from stationmaster.workflow_definitions d where d.id = a.workflow_definition_id) as workflow,
       a.holder as server_id, (select n.name from stationmaster_internal.server_names n where n.id = a.holder) as server,
       a.claimed_at as since
from stationmaster_internal.executions_active a
where a.workspace_id = $1
order by a.claimed_at, a.execution_id
limit $2
