-- Every heartbeat and its age. Called by the supervisor. Locks nothing.
-- The table has a row per dispatcher, so it is read whole.
select dispatcher_id, project, task_queue, server_id, epoch,
       greatest(extract(epoch from now() - beat_at), 0)::double precision as age
from stationmaster_internal.dispatcher_heartbeats
order by dispatcher_id
limit 10000
