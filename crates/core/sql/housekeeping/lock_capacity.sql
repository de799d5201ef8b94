-- Locks a page of workspaces so that the next statement can compare counters with rows. Skips what others hold.
-- Called by housekeeping. Index: workspace_capacity_pkey. $1 after this workspace, $2 how many.
select workspace_id
from stationmaster_internal.workspace_capacity
where workspace_id > $1
order by workspace_id
limit $2
for update skip locked
