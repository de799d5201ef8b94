-- What a server still holds when it leaves. Called at the end of a shutdown. Locks nothing; reads the small active table.
-- $1 server, $2 engines whose runs end with their server.
select execution_id, token
from stationmaster_internal.executions_active
where holder = $1 and (state = 'STARTING' or engine = any ($2))
