-- Makes a trigger or changes it; what is not given stays as it is, or takes its default when the trigger is new. The trigger
-- accept_trigger gives the project its workspace, or refuses. Called for people. Locks the trigger's row. Index: triggers_pkey.
-- $1 project, $2 task queue (empty: every), $3 name, $4 definition, $5 schema of the payload, $6 priority (null: not given),
-- $7 is a schema given, be it none?
insert into stationmaster.triggers as t (project, task_queue, name, workflow_definition_id, payload_schema, priority)
values ($1, $2, $3, $4, $5::jsonb, coalesce($6, 0))
on conflict (project, task_queue, name) do update
    set workflow_definition_id = excluded.workflow_definition_id,
        payload_schema = case when $7 then excluded.payload_schema else t.payload_schema end,
        priority = coalesce($6, t.priority)
