-- What this server says to run inside itself, leaving out what was only just dispatched: its runs must be there. Called by the watcher
-- of closes of a local engine. Locks nothing; reads the small active table.
-- $1 server, $2 engines whose runs end with their server, $3 younger than these seconds are left out.
select execution_id, token
from stationmaster_internal.executions_active
where holder = $1 and engine = any ($2) and state = 'RUNNING' and dispatched_at < now() - make_interval(secs => $3)
