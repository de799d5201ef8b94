-- Makes a workspace or changes the one with this id; nulls leave a value as it is, or take the default for a new one.
-- Called by the API and the CLI. Locks the workspace's row, and by trigger its capacity row. Index: workspaces_pkey.
-- $1 id, $2 name, $3 plan, $4 limit of its own, $5 take away its own limit, $6 paused.
insert into stationmaster.workspaces as w (id, name, plan, max_concurrent, paused)
values ($1, $2, coalesce($3, 'FREE'), $4, coalesce($6, false))
on conflict (id) do update
    set name = coalesce($2, w.name),
        plan = coalesce($3, w.plan),
        max_concurrent = case when $5 then null else coalesce($4, w.max_concurrent) end,
        paused = coalesce($6, w.paused),
        updated_at = now()
returning id
