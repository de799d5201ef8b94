-- Slots in use and limits of the twenty workspaces that use most, and of all others together, under a name that no workspace can have. Called when metrics are asked for. Locks
-- nothing. The table of capacities is narrow and read whole. Index: workspaces_pkey.
with ranked as (
    select workspace_id, active, max_concurrent, row_number() over (order by active desc, workspace_id) as place
    from stationmaster_internal.workspace_capacity
    where not gone
), named as (
    select coalesce(w.name, r.workspace_id::text) as workspace, r.active, r.max_concurrent
    from ranked r
    left join stationmaster.workspaces w on w.id = r.workspace_id
    where r.place <= 20
)
select workspace, sum(active)::double precision as used, sum(max_concurrent)::double precision as slots from named group by workspace
union all
select '(others)', sum(active)::double precision, sum(max_concurrent)::double precision from ranked where place > 20 having count(*) > 0
