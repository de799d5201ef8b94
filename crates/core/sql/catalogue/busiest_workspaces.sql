-- Workspaces, those first in which work waits and none may run, then the full ones in which work waits, then those with the most slots in use.
-- Called for the overview. Locks nothing. Reads the narrow row of every workspace in scope, and of those that it tells the rest.
-- Index: workspaces_pkey, queue_pending_in_line. $1 only of these (null: all), $2 how many.
with chosen as materialized (
    select c.workspace_id, row_number() over (
               order by c.ready and (c.paused or c.max_concurrent = 0) desc, c.ready and c.active >= c.max_concurrent desc, c.active desc, c.workspace_id) as place
    from stationmaster_internal.workspace_capacity c
    where not c.gone and ($1::uuid[] is null or c.workspace_id = any ($1))
    order by place
    limit $2
)
select w.id, w.name, w.plan, w.max_concurrent as own_limit, c.max_concurrent as limit, c.weight, w.paused, c.active,
       (select count(*) from (select from stationmaster_internal.queue_pending p
                              where p.workspace_id = w.id and p.stage = 'ready' limit 10001) counted) as ready,
       w.created_at, w.updated_at
from chosen
join stationmaster_internal.workspace_capacity c on c.workspace_id = chosen.workspace_id
join stationmaster.workspaces w on w.id = chosen.workspace_id
order by chosen.place
