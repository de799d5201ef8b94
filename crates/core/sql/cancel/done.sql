-- A wish has been passed on to the engine, or has no object any more. Notes it in the history once, and in the active row: a run
-- that ends with its server before it has obeyed goes back to the queue, and the wish with it (release.sql).
-- Called by the canceller. Locks the request and the active row. Index: cancel_requests_pkey, executions_active_pkey.
-- $1 execution, $2 item (null: nothing to note), $3 workspace.
with done as (
    delete from stationmaster_internal.cancel_requests
    where execution_id = $1
    returning execution_id, actor, reason, kind
), marked as (
    update stationmaster_internal.executions_active a
    set cancel_requested_at = clock_timestamp()
    where a.execution_id = $1 and exists (select from done where kind = 'cancel')
)
insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, event, actor, detail)
select $2, execution_id, $3, kind || '_requested', actor, reason
from done
where $2::uuid is not null
