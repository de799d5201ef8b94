-- Adds a version to a definition, numbered after its newest. The graph is looked at by trigger.
-- Locks the definition's row. $1 definition, $2 graph.
insert into stationmaster.workflow_definition_versions (workflow_definition_id, workflow)
values ($1, $2::jsonb)
returning id, version
