-- Claims of ours whose answer was lost on the way: committed, and nobody works on them. Called by the claim loop after
-- an error. Locks nothing; reads the (small) active table. $1 tokens, $2 the server that claimed under them.
select execution_id, token
from stationmaster_internal.executions_active
where token = any ($1) and holder = $2 and state = 'STARTING'
