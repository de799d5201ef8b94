-- Where a run of the embedded engine stands, when an earlier claim had begun it. Called at the start of a run that may
-- have been started before. Locks nothing. Index: embedded_runs_pkey. $1 execution.
select position, extract(epoch from wake_at - clock_timestamp())::double precision as wake_in, outputs::text as outputs
from stationmaster_internal.embedded_runs
where execution_id = $1
