-- Wishes that a stray be ended: this very run. A server carries it out. Called by people. Locks the row. Index: stray_runs_pkey.
-- $1 run, $2 execution, $3 who, $4 why. Answers its workspace; nothing: there is no such stray.
with wished as (
    update stationmaster_internal.stray_runs
    set end_wished_at = now(), end_wished_by = $3, end_reason = $4
    where run_id = $1 and execution_id = $2
    returning workspace_id
)
select workspace_id, pg_notify('stationmaster', 'cancel')::text as rung
from wished
