-- The dead letters that match, in the order in which they were put aside, a page at a time. Called by a replay of many and before
-- one. Locks nothing. Index: signals_settled_dead. $1 project, $2 task queue, $3 name, $4 reason, $5 how many,
-- $6 settled before this time, $7 only of projects of these workspaces (null: any), $8, $9 after this time and signal.
select d.signal_key, d.settled_at
from stationmaster_internal.signals_settled d
join stationmaster_internal.signals_inbox s on s.key = d.signal_key
where d.status = 'DEAD' and ($1::text is null or s.project = $1) and ($2::text is null or s.task_queue = $2)
  and ($3::text is null or s.name = $3) and ($4::text is null or d.reason = $4) and d.settled_at < $6
  and ($7::uuid[] is null or s.project in (select p.name from stationmaster.projects p where p.workspace_id = any ($7)))
  and ($8::timestamptz is null or (d.settled_at, d.signal_key) > ($8, $9::text))
order by d.settled_at, d.signal_key
limit $5
