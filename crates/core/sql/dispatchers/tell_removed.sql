-- Locks a dispatcher that is about to be removed, lifts the floor of epochs to its own, and tells of it while it is there to be told of: nobody
-- owns it, its run has ended, and nothing waits for it. Called by its last owner, in the transaction that removes it. What is sent in the same
-- moment, and is not to be seen yet, is found by the supervisor. Index: dispatchers_pkey, signals_pending_by_dispatcher.
-- $1 dispatcher, $2 epoch, $3 its last owner, $4 trace. Answers nothing when somebody has taken it, or something waits for it.
with unwanted as materialized (
    select d.id, d.epoch, d.removal_wished_by
    from stationmaster.dispatchers d
    where d.id = $1 and d.epoch = $2 and d.resting_since is not null and d.removal_wished_at is not null
      and not exists (select from stationmaster_internal.signals_pending p where p.dispatcher_id = d.id)
    for update of d
), lifted as (
    update stationmaster_internal.dispatcher_floor f
    set epoch = greatest(f.epoch, u.epoch)
    from unwanted u
)
select stationmaster_internal.tell_of_dispatcher(id, 'removed', epoch, $3::uuid, null, $3::uuid::text,
                                                 jsonb_build_object('wished_by', removal_wished_by), traceparent => $4)
from unwanted
