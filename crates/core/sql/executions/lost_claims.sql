-- Claims of ours whose answer was lost on the way: committed, and nobody works on them. Called by the claim loop after
-- an error. Locks nothing. Index: executions_active_pkey. $1 executions, $2 the server that claimed them.
select execution_id, token
from stationmaster.executions_active
where execution_id = any ($1) and holder = $2 and state = 'STARTING'
