-- What runs on engines of this name that are retired runs on this one: somebody knows that it does. Called by `engine change`.
-- Locks active rows in id order; reads the small active table. $1 name, $2 the engine.
with moving as materialized (
    select execution_id
    from stationmaster_internal.executions_active
    where engine_id in (select id from stationmaster_internal.engines where name = $1 and retired_at is not null)
    order by execution_id
    for update
)
update stationmaster_internal.executions_active a
set engine_id = $2, missing_since = null
where a.execution_id = any (array(select execution_id from moving))
