-- Workspaces with their limits and how they are used. Locks nothing. Index: workspaces_pkey.
-- $1 only this one (null: all), $2 after this id, $3 how many, $4 only of these (null: all).
select w.id, w.name, w.plan, w.max_concurrent as own_limit, c.max_concurrent as limit, c.weight, w.paused, c.active,
       (select count(*) from (select from stationmaster_internal.queue_pending p
                              where p.workspace_id = w.id and p.stage = 'ready' limit 10001) counted) as ready,
       w.created_at, w.updated_at
from stationmaster.workspaces w
join stationmaster_internal.workspace_capacity c on c.workspace_id = w.id
where ($1::uuid is null or w.id = $1) and w.id > $2 and ($4::uuid[] is null or w.id = any ($4))
order by w.id
limit $3
