-- Wishes that an execution which holds a slot be ended: by force, or as somebody says. A server carries it out. It takes the place of a
-- wish to cancel, which asks for less; of two that end it the first holds.
-- Called by people. Locks the wish. Index: executions_active_pkey, cancel_requests_pkey.
-- $1 execution, $2 kind, $3 actor, $4 reason, $5 status, $6 output, $7 error. Answers nothing when it is not active.
with running as materialized (
    select execution_id
    from stationmaster_internal.executions_active
    where execution_id = $1
), wished as (
    insert into stationmaster_internal.cancel_requests as r (execution_id, kind, actor, reason, end_status, output, error)
    select execution_id, $2, $3, $4, $5, $6, $7
    from running
    on conflict (execution_id) do update
        set kind = excluded.kind, actor = excluded.actor, reason = excluded.reason, end_status = excluded.end_status,
            output = excluded.output, error = excluded.error
        where r.kind = 'cancel'
)
select pg_notify('stationmaster', 'cancel')
from running
