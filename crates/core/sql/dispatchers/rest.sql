-- Lets a dispatcher rest for which nothing waits: nobody owns it until a signal comes. What is sent in the same moment is found by the
-- next look, which asks for signals and not for messages. Called by its owner. Locks the row. Index: dispatchers_pkey,
-- signals_pending_by_dispatcher. $1 dispatcher, $2 epoch, $3 owner, $4 trace.
with given as (
    update stationmaster.dispatchers d
    set resting_since = now(), handed_over_at = now(), lease_until = least(lease_until, now()), owner = null, run_id = null,
        run_started_at = null
    where id = $1 and epoch = $2 and owner = $3 and handed_over_at is null
      and not exists (select from stationmaster_internal.signals_pending p where p.dispatcher_id = d.id)
    returning id, epoch
)
select stationmaster_internal.tell_of_dispatcher(id, 'rested', epoch, $3, null, $3::text, traceparent => $4)
from given
