-- The task queues on which executions run, the busiest first. Called by whoever asks whether there are workers, seldom. Locks nothing.
-- Reads executions_active, which holds what runs and no more.
-- $1 the engine (null: any but the local ones), $2 the task queue of definitions that name none, $3 leave out what was started less than
-- so many seconds ago, $4 how many, $5 engines that live inside servers.
select coalesce(d.task_queue, $2) as name, count(*) as executions
from stationmaster_internal.executions_active a
left join stationmaster.workflow_definitions d on d.id = a.workflow_definition_id
where a.state = 'RUNNING' and ($1::integer is null or a.engine_id = $1) and a.engine <> all ($5)
  and a.dispatched_at < now() - make_interval(secs => $3)
group by 1
order by 2 desc, 1
limit $4
