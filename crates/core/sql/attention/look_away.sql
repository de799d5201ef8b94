-- A server that leaves a lane, or that can take nothing more of it, looks no more: whoever brings work must ring again, and the
-- others should look once. Called at the end of a shutdown and by a claim loop that is stalled. Locks the lane's row.
-- Index: attention_pkey. $1 lane, $2 the word that is sent, $3 how far virtual time has come (null: the lane has none).
with left_alone as (
    update stationmaster_internal.attention
    set until = '-infinity', virtual_time = greatest(virtual_time, $3)
    where lane = $1
    returning lane
)
select case when lane = 'executions' then setval('stationmaster_internal.queue_watched', 1) end, pg_notify('stationmaster', $2)
from left_alone
