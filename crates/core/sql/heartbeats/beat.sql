-- The heartbeats of dispatchers, written by the process that owns them. A newer epoch is never overwritten: such a one is missing in the
-- answer. Called by the owner. Locks its own rows, in the order of their ids. Index: dispatcher_heartbeats_pkey.
-- $1 dispatchers, $2 projects, $3 task queues, $4 servers, $5 epochs.
insert into stationmaster_internal.dispatcher_heartbeats as h (dispatcher_id, project, task_queue, server_id, epoch)
select id, project, task_queue, server_id, epoch
from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[]) b (id, project, task_queue, server_id, epoch)
order by id
on conflict (dispatcher_id) do update
    set server_id = excluded.server_id, epoch = excluded.epoch, beat_at = now()
    where h.epoch <= excluded.epoch
returning dispatcher_id
