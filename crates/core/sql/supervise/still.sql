-- Is the dispatcher as it was when it was looked at? Asked right before a run is ended. Locks nothing. Index: dispatchers_pkey.
-- $1 dispatcher, $2 epoch, $3 owned.
select exists (select from stationmaster.dispatchers
               where id = $1 and epoch = $2 and ((lease_until > now() and handed_over_at is null) is true) = $3)
