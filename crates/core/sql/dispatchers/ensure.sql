-- Makes the dispatchers that the settings name, and wakes those of them that rest. Called when a server starts. Index: dispatchers_pkey.
-- $1 projects, $2 task queues.
insert into stationmaster.dispatchers (id, project, task_queue)
select stationmaster.dispatcher_id(a.project, a.task_queue), a.project, a.task_queue
from unnest($1::text[], $2::text[]) as a (project, task_queue)
order by 1
on conflict (id) do update set resting_since = null
where dispatchers.resting_since is not null
