-- Gives a dispatcher up in good order, keeping its epoch; anybody may take it at once. Called by an owner that leaves.
-- Locks the row. Index: dispatchers_pkey. $1 dispatcher, $2 epoch, $3 owner, $4 trace.
with given as (
    update stationmaster.dispatchers
    set handed_over_at = now(), run_id = null
    where id = $1 and epoch = $2 and owner = $3 and handed_over_at is null
    returning id, epoch
)
select stationmaster_internal.tell_of_dispatcher(id, 'handed_over', epoch, $3, null, $3::text, traceparent => $4)
from given
