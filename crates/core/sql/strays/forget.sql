-- Forgets strays that are none any more: their runs have ended, their rows are back, or their engine is not used any more. Called by the
-- reconciler. Locks what it deletes. The table holds strays alone, and is read whole.
-- $1 the engine, $2 the runs on it that no row tells of. Answers what was forgotten.
delete from stationmaster_internal.stray_runs
where (engine_id = $1 and run_id <> all ($2::text[]))
   or engine_id in (select id from stationmaster_internal.engines where retired_at is not null)
returning execution_id, run_id
