-- The rows of a page of signals, from its candidates; or one of them alone. Called for people. Locks nothing.
-- Index: signals_inbox_seq and those of the view's other tables.
-- $1 candidates by their place in the order of arrival, $2 task queue, $3 name, $4 status (null: any), $5 how many, $6 only of projects of these workspaces (null: any).
select id, project, task_queue, name, status, execution_id, queue_item_id, received_at, payload::text as payload, correlation_id,
       sent_by, dispatcher_id, seq, reason, detail, epoch, settled_at, replays
from unnest($1::bigint[]) as candidate (candidate_seq)
-- From each candidate to its row and no other way, however few rows the planner expects of the filters: `offset` holds it to that.
cross join lateral (
    select *
    from stationmaster.signals s
    where s.seq = candidate_seq
      and ($2::text is null or s.task_queue = $2)
      and ($3::text is null or s.name = $3)
      and ($4::text is null or s.status = $4)
      and ($6::uuid[] is null or s.project in (select p.name from stationmaster.projects p where p.workspace_id = any ($6)))
    offset 0) found
order by seq desc
limit $5
