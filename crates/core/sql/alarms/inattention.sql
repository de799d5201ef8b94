-- A server that leaves looks no more: whoever sets an alarm must ring again, and the others should look once.
-- Called at the end of a shutdown. Locks the one row.
with left_alone as (
    update stationmaster.alarm_attention
    set until = '-infinity'
    returning one
)
select pg_notify('stationmaster', 'alarms')
from left_alone
