-- Of executions whose runs have ended by force, those of which somebody has said how they ended: that word is the record, and whoever
-- carries it out writes it. Called by the watcher of closes and the reconciler. Locks nothing. Index: cancel_requests_pkey.
-- $1 executions.
select execution_id
from stationmaster_internal.cancel_requests
where execution_id = any ($1) and kind = 'complete'
