-- Signals, newest first. Called for people. Locks nothing. Index: signals_inbox_seq, signals_inbox_pkey.
-- $1 project, $2 task queue, $3 name, $4 status, $5 older than this position, $6 how many, $7 only this one,
-- $8 only of projects of these workspaces (null: any).
select id, project, task_queue, name, status, execution_id, queue_item_id, received_at, payload::text as payload, correlation_id,
       sent_by, dispatcher_id, seq, reason, detail, epoch, settled_at, replays
from stationmaster.signals
where ($1::text is null or project = $1) and ($2::text is null or task_queue = $2) and ($3::text is null or name = $3)
  and ($4::text is null or status = $4) and seq < $5 and ($7::text is null or id = $7)
  and ($8::uuid[] is null or project in (select p.name from stationmaster.projects p where p.workspace_id = any ($8)))
order by seq desc
limit $6
