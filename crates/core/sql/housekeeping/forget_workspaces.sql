-- Removes the capacity rows of deleted workspaces once nothing of theirs waits or runs. Called by housekeeping.
-- Index: workspace_capacity_gone, queue_pending_in_line.
delete from stationmaster_internal.workspace_capacity c
where c.gone and c.active = 0
  and not exists (select from stationmaster_internal.queue_pending p where p.stage in ('ready', 'later', 'parked') and p.workspace_id = c.workspace_id)
