-- Ends pending items of workspaces that were deleted: FAILED, with the reason. Called by housekeeping.
-- Locks pending rows, skipping what others hold. Index: workspace_capacity_gone, queue_pending_in_line.
-- $1 who, $2 how many.
with orphan as materialized (
    select p.item_id
    from stationmaster_internal.workspace_capacity c
    join stationmaster_internal.queue_pending p using (workspace_id)
    where c.gone and p.stage in ('ready', 'later', 'parked')
    limit $2
    for update of p skip locked
), removed as (
    delete from stationmaster_internal.queue_pending p
    where p.item_id = any (array(select item_id from orphan))
    returning p.*
), recorded as (
    insert into stationmaster_internal.executions_finished
        (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status, status,
         reason, attempts, recoveries, finished_at, finished_by, last_error)
    select coalesce(execution_id, item_id), item_id, workspace_id, workflow_definition_id,
           workflow_definition_version_id, 'FAILED', case when execution_id is not null then 'FAILED' end,
           'workspace_gone', attempts, recoveries, clock_timestamp(), $1, 'the workspace was deleted'
    from removed
)
select workspace_id, count(*) as failed
from removed
group by workspace_id
