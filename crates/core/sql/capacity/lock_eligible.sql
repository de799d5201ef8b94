-- Locks the workspaces that may be served now, those with the lowest virtual time first, and reads their free slots.
-- Called by the claim. What it returns is the newest committed state under lock, so a later statement that takes no
-- more than `free` can never exceed a limit. Locks capacity rows, skipping what others hold.
-- Nothing is served by an engine that was retired meanwhile.
-- Index: workspace_capacity_eligible, engines_pkey. $1 the virtual time to look from, $2 how many, $3 the engine.
select workspace_id, max_concurrent - active as free, greatest(weight, 1e-6) as weight, virtual_time
from stationmaster_internal.workspace_capacity
where eligible and virtual_time >= $1
  and exists (select from stationmaster_internal.engines where id = $3 and retired_at is null)
order by virtual_time, workspace_id
limit $2
for update skip locked
