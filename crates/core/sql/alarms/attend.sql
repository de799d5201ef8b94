-- Says that this server will look again every few milliseconds for a while, so that nobody needs to ring. Called by the
-- claim loop when it has found work. Locks the one row, or leaves it when somebody else has just said the same. $1 seconds.
update stationmaster.alarm_attention
set until = clock_timestamp() + make_interval(secs => $1)
where one = (select one from stationmaster.alarm_attention
             where until < clock_timestamp() + make_interval(secs => $1 / 2)
             for update skip locked)
