-- Makes a workspace or changes the one with this id; nulls leave a value as it is, or take the default for a new one.
-- Called by the API and the CLI. Locks the workspace's row, and by trigger its capacity row. Index: workspaces_pkey.
-- $1 id, $2 name, $3 plan in whatever case, $4 limit of its own, $5 take away its own limit, $6 paused.
with meant as (
    -- One that is not there is refused under the name that was given.
    select coalesce((select p.name from stationmaster.plans p where lower(p.name) = lower($3)), $3) as plan
)
insert into stationmaster.workspaces as w (id, name, plan, max_concurrent, paused)
select $1, $2, coalesce(meant.plan, 'FREE'), $4, coalesce($6, false)
from meant
on conflict (id) do update
    set name = coalesce($2, w.name),
        plan = coalesce((select meant.plan from meant), w.plan),
        max_concurrent = case when $5 then null else coalesce($4, w.max_concurrent) end,
        paused = coalesce($6, w.paused),
        updated_at = now()
returning id
