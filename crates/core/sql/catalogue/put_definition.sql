-- Makes a workflow definition or changes the one with this id; nulls leave a value as it is. A definition never moves
-- to another workspace: then nothing is answered. Locks the definition's row. Index: workflow_definitions_pkey.
-- $1 id, $2 workspace, $3 name, $4 task queue, $5 workflow type, $6 attempts, $7 published version, $8 paused,
-- $9 run timeout in seconds, $10 take the run timeout away.
insert into stationmaster.workflow_definitions as d
    (id, workspace_id, name, task_queue, workflow_type, max_attempts, published_version, paused, run_timeout)
values ($1, $2, $3, $4, $5, $6, $7, coalesce($8, false), make_interval(secs => $9))
on conflict (id) do update
    set name = coalesce($3, d.name),
        task_queue = coalesce($4, d.task_queue),
        workflow_type = coalesce($5, d.workflow_type),
        max_attempts = coalesce($6, d.max_attempts),
        published_version = coalesce($7, d.published_version),
        paused = coalesce($8, d.paused),
        run_timeout = case when $10 then null else coalesce(make_interval(secs => $9), d.run_timeout) end,
        updated_at = now()
    where d.workspace_id = excluded.workspace_id
returning id
