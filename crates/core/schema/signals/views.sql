-- Signals as everybody may read them, and a plain INSERT as a way in. The view asks with its caller's eyes.

create or replace view stationmaster.signals with (security_invoker = true) as
select s.id, s.project, s.task_queue, s.name, coalesce(d.status, 'PENDING') as status, e.execution_id, s.received_at, s.payload,
       s.correlation_id, s.traceparent, s.sent_by, s.dispatcher_id, s.seq, d.item_id as queue_item_id, d.reason, d.detail,
       d.epoch, d.settled_at, coalesce(d.replays, p.replays, 0) as replays
from stationmaster_internal.signals_inbox s
left join stationmaster_internal.signals_settled d on d.signal_key = s.key
left join stationmaster_internal.signals_pending p on p.signal_key = s.key
left join lateral (
    select q.execution_id from stationmaster_internal.queue_pending q where q.item_id = d.item_id and q.execution_id is not null
    union all
    select a.execution_id from stationmaster_internal.active_by_item a where a.of_item = d.item_id
    union all
    select f.execution_id from stationmaster_internal.finished_by_item f
    where f.of_item = d.item_id and f.superseded_at is null and f.status is not null
    limit 1
) e on true;

alter view stationmaster.signals alter column task_queue set default 'default';
alter view stationmaster.signals alter column payload set default '{}';
alter view stationmaster.signals alter column sent_by set default session_user;

-- A plain INSERT sends signals, as one statement, however many rows it has.
create or replace rule send as on insert to stationmaster.signals do instead
insert into stationmaster_internal.signals_inbox (id, project, task_queue, name, payload, correlation_id, traceparent, sent_by)
values (coalesce(new.id, stationmaster.new_id()::text), new.project, coalesce(new.task_queue, 'default'), new.name,
        coalesce(new.payload, '{}'), new.correlation_id, new.traceparent, coalesce(new.sent_by, session_user))
returning id, project, task_queue, name, 'PENDING'::text, null::uuid, received_at, payload, correlation_id, traceparent, sent_by,
          dispatcher_id, seq, null::uuid, null::text, null::text, null::bigint, null::timestamptz, 0;
