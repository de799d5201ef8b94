-- The graphs of versions; immutable, so the caller keeps them.
-- Called after the claim has committed. Locks nothing. Index: workflow_definition_versions_pkey. $1 versions.
select id, workflow::text as workflow
from stationmaster.workflow_definition_versions
where id = any ($1)
