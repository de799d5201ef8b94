-- Wishes to cancel, terminate or complete, with the execution they are about as it stands now: null when it is not active any more.
-- Called by the canceller. Locks nothing. Index: cancel_requests_pkey, executions_active_pkey. $1 how many.
select r.execution_id, r.actor, r.reason, r.kind, r.end_status, r.output, r.error, a.state, a.holder, a.engine_id, a.item_id, a.workspace_id
from stationmaster_internal.cancel_requests r
left join stationmaster_internal.executions_active a using (execution_id)
order by r.requested_at
limit $1
