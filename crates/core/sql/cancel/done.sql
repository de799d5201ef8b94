-- A wish has been passed on to the engine, or has no object any more. Notes it in the history once.
-- Called by the canceller. Locks the request. Index: cancel_requests_pkey.
-- $1 execution, $2 item (null: nothing to note), $3 workspace.
with done as (
    delete from stationmaster_internal.cancel_requests
    where execution_id = $1
    returning execution_id, actor, reason
)
insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, event, actor, detail)
select $2, execution_id, $3, 'cancel_requested', actor, reason
from done
where $2::uuid is not null
