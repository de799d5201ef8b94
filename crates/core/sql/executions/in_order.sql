-- The claims of a batch in the order in which they are to be started: priority, then age. Called by the turns of the
-- exclusive mode, where one start follows another. Locks nothing. Index: executions_active_pkey. $1 executions.
select execution_id
from stationmaster_internal.executions_active
where execution_id = any ($1)
order by rank, seq
