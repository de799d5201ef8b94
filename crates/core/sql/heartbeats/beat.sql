-- A dispatcher's heartbeat, written by the process that owns it. A newer epoch is never overwritten: the answer is empty.
-- Called by the owner. Locks its own row. Index: dispatcher_heartbeats_pkey.
-- $1 dispatcher, $2 project, $3 task queue, $4 server, $5 epoch.
insert into stationmaster_internal.dispatcher_heartbeats as h (dispatcher_id, project, task_queue, server_id, epoch)
values ($1, $2, $3, $4, $5)
on conflict (dispatcher_id) do update
    set server_id = excluded.server_id, epoch = excluded.epoch, beat_at = now()
    where h.epoch <= excluded.epoch
returning dispatcher_id
