-- The rows of a page of signals, from its candidates; or one of them alone. Called for people. Locks nothing.
-- Index: signals_inbox_pkey and those of the view's other tables.
-- $1 candidates, $2 task queue, $3 name, $4 status (null: any), $5 how many, $6 only of projects of these workspaces (null: any).
select id, project, task_queue, name, status, execution_id, queue_item_id, received_at, payload::text as payload, correlation_id,
       sent_by, dispatcher_id, seq, reason, detail, epoch, settled_at, replays
from stationmaster.signals
where id = any ($1)
  and ($2::text is null or task_queue = $2) and ($3::text is null or name = $3)
  and ($4::text is null or status = $4)
  and ($6::uuid[] is null or project in (select p.name from stationmaster.projects p where p.workspace_id = any ($6)))
order by seq desc
limit $5
