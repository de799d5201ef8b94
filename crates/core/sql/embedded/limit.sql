-- When a run has to be over, at the latest: fixed when it is begun for the first time, and the same for whoever goes on with it.
-- Called by the embedded engine, for definitions that have a run_timeout. Locks the run's row. Index: embedded_runs_pkey.
-- $1 execution, $2 token, $3 seconds that it may take. Answers the seconds that are left.
insert into stationmaster_internal.embedded_runs as r (execution_id, token, deadline_at)
values ($1, $2, clock_timestamp() + make_interval(secs => $3))
on conflict (execution_id) do update
    set deadline_at = coalesce(r.deadline_at, excluded.deadline_at)
returning extract(epoch from r.deadline_at - clock_timestamp())::double precision
