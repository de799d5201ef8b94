-- Says that this server will look again every few milliseconds for a while, so that enqueuers need not ring, and how far
-- virtual time has come. Called by the claim loop when it has found work, at most every few hundred milliseconds.
-- Locks the one row, or leaves it when somebody else has just said the same. $1 seconds, $2 virtual time.
update stationmaster.attention
set until = clock_timestamp() + make_interval(secs => $1), virtual_time = greatest(virtual_time, $2)
where one = (select one from stationmaster.attention
             where until < clock_timestamp() + make_interval(secs => $1 / 2)
             for update skip locked)
