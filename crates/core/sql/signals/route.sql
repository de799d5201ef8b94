-- Routes a batch: each signal becomes a queue item or a dead letter, and leaves the inbox, all in this one statement, and only
-- under the epoch of the dispatcher's owner. A takeover waits for the share lock, so no route of an older epoch comes after it.
-- Called by whoever runs the dispatcher. Locks the dispatcher's row (shared), then pending rows in id order.
-- Index: dispatchers_pkey, signals_pending_pkey, queue_items_idempotency.
-- $1 dispatcher, $2 epoch, $3 owner, $4 signals, $5 workspaces, $6 definitions, $7 priorities, $8 reasons (null: to be routed),
-- $9 details.
with mine as materialized (
    select id
    from stationmaster.dispatchers
    where id = $1 and epoch = $2 and owner = $3 and handed_over_at is null
    for share
), batch as materialized (
    select p.signal_key, p.seq, p.replays, a.workspace_id, a.definition_id, a.priority, a.reason, a.detail
    from unnest($4::text[], $5::uuid[], $6::uuid[], $7::integer[], $8::text[], $9::text[])
        as a (signal_key, workspace_id, definition_id, priority, reason, detail)
    join stationmaster_internal.signals_pending p on p.signal_key = a.signal_key and p.dispatcher_id = $1
    where exists (select from mine)
    order by p.signal_key
    for update of p
), items as (
    insert into stationmaster_internal.queue_door
        (id, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, idempotency_key, traceparent,
         correlation_id, enqueued_by)
    select stationmaster_internal.item_of_signal(s.key, s.received_at), b.workspace_id, b.definition_id, d.current_version_id,
           s.payload, b.priority, 'signal:' || b.seq, s.traceparent, s.correlation_id, $1
    from batch b
    join stationmaster_internal.signals_inbox s on s.key = b.signal_key
    join stationmaster.workflow_definitions d on d.id = b.definition_id
    where b.reason is null
    order by b.seq
    on conflict (workspace_id, idempotency_key) where idempotency_key is not null do nothing
    returning id, idempotency_key
), settled as (
    insert into stationmaster_internal.signals_settled
        (signal_key, dispatcher_id, status, item_id, reason, detail, epoch, settled_by, settled_at, replays)
    select b.signal_key, $1, case when b.reason is null then 'ROUTED' else 'DEAD' end, coalesce(i.id, q.id), b.reason, b.detail,
           $2, $3::text, clock_timestamp(), b.replays
    from batch b
    left join items i on i.idempotency_key = 'signal:' || b.seq
    left join stationmaster_internal.queue_items q
        on b.reason is null and q.workspace_id = b.workspace_id and q.idempotency_key = 'signal:' || b.seq
    where b.reason is not null or i.id is not null or q.id is not null
    returning signal_key, status
), gone as (
    delete from stationmaster_internal.signals_pending p
    using settled s
    where p.signal_key = s.signal_key
)
select exists (select from mine) as held,
       count(*) filter (where status = 'ROUTED') as routed,
       count(*) filter (where status = 'DEAD') as dead
from settled
