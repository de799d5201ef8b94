-- A server that leaves, or that can take nothing more, looks no more: enqueuers must ring again, and the others should
-- look once. Called at the end of a shutdown and by a claim loop that is stalled. Locks the one row. $1 virtual time.
with left_alone as (
    update stationmaster.attention
    set until = '-infinity', virtual_time = greatest(virtual_time, $1)
    returning one
)
select pg_notify('stationmaster', 'queue')
from left_alone
