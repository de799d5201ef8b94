-- How many workspaces have all their slots in use while more may wait, and how many have more active executions than their counter says:
-- the counter is what claims go by, so that is the one way in which a limit could be passed. Called when metrics are asked for. Locks
-- nothing. Both tables are narrow and read whole, in one snapshot.
with counted as (
    select workspace_id, count(*) as active from stationmaster_internal.executions_active group by workspace_id
)
select count(*) filter (where c.ready and not c.paused and c.active >= c.max_concurrent)::double precision as "full",
       count(*) filter (where n.active > c.active)::double precision as overdrawn
from stationmaster_internal.workspace_capacity c
left join counted n using (workspace_id)
