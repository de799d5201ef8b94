-- The ids of dead letters that match, oldest first, a page at a time. Called by a replay of many. Locks nothing.
-- Index: signals_settled_dead. $1 project, $2 task queue, $3 name, $4 reason, $5 how many, $6 settled before this time.
select d.signal_id
from stationmaster.signals_settled d
join stationmaster.signals_inbox s on s.id = d.signal_id
where d.status = 'DEAD' and ($1::text is null or s.project = $1) and ($2::text is null or s.task_queue = $2)
  and ($3::text is null or s.name = $3) and ($4::text is null or d.reason = $4) and d.settled_at < $6
order by d.settled_at
limit $5
