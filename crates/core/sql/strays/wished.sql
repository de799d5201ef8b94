-- Strays that somebody wants ended. Called by the canceller. Locks nothing. The table holds strays alone, and is read whole.
-- $1 the engine, $2 how many.
select execution_id, run_id, end_wished_by as actor, end_reason as reason
from stationmaster_internal.stray_runs
where end_wished_at is not null and engine_id = $1
order by end_wished_at
limit $2
