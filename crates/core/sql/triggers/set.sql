-- Makes a trigger or changes it. The trigger accept_trigger gives the project its workspace, or refuses. Called for people.
-- Locks the trigger's row. Index: triggers_pkey.
-- $1 project, $2 task queue (empty: every), $3 name, $4 definition, $5 schema of the payload, $6 priority.
insert into stationmaster.triggers (project, task_queue, name, workflow_definition_id, payload_schema, priority)
values ($1, $2, $3, $4, $5::jsonb, $6)
on conflict (project, task_queue, name) do update
    set workflow_definition_id = excluded.workflow_definition_id, payload_schema = excluded.payload_schema,
        priority = excluded.priority
