-- Cancels items: those that wait are over at once, those that hold a slot are put down for their engine to be asked. Called by people, a
-- page at a time. What a claim takes while this waits for its row is neither, and is found by the next walk.
-- Locks pending rows, by deleting them. Index: queue_pending_pkey, executions_active_pkey, executions_active_again.
-- $1 items, $2 reason, $3 who. Answers items and workspaces, and which of them run.
with waiting as (
    delete from stationmaster_internal.queue_pending p
    where p.item_id = any ($1)
    returning p.item_id, p.execution_id, p.workspace_id, p.workflow_definition_id, p.workflow_definition_version_id, p.attempts, p.recoveries,
              p.last_error
), ended as (
    insert into stationmaster_internal.executions_finished
        (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status, status, reason, attempts,
         recoveries, finished_at, finished_by, last_error)
    select coalesce(execution_id, item_id), item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, 'CANCELLED',
           case when execution_id is not null then 'CANCELLED' end, $2, attempts, recoveries, clock_timestamp(), $3, last_error
    from waiting
), running as materialized (
    select a.execution_id, a.item_id, a.workspace_id
    from stationmaster_internal.executions_active a
    where a.execution_id = any ($1) and a.execution_id = a.item_id
    union all
    select a.execution_id, a.item_id, a.workspace_id
    from stationmaster_internal.executions_active a
    where a.item_id = any ($1) and a.execution_id <> a.item_id
), asked as (
    insert into stationmaster_internal.cancel_requests (execution_id, actor, reason)
    select execution_id, $3, $2
    from running
    order by execution_id
    on conflict do nothing
    returning execution_id
)
select item_id, workspace_id, false as runs
from waiting
union all
select r.item_id, r.workspace_id, true
from asked
join running r using (execution_id)
