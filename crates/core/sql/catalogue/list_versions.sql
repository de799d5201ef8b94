-- Versions of a definition, newest first. Called by the API. Locks nothing.
-- Index: workflow_definition_versions_workflow_definition_id_version_key. $1 definition, $2 below this number, $3 how many.
select id, version, workflow::text as graph, created_at
from stationmaster.workflow_definition_versions
where workflow_definition_id = $1 and version < $2
order by version desc
limit $3
