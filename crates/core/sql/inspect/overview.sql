-- The state of the whole in one row, for the overview. Called by the page. Locks nothing.
-- Backlogs beyond 100,000 are the planner's estimate; the last minute is found by the brin index.
select (select case when reltuples < 100000 then (select count(*) from stationmaster.queue_pending)
                    else reltuples::bigint end
        from pg_class where oid = 'stationmaster.queue_pending'::regclass) as waiting,
       (select count(*) filter (where state = 'STARTING') from stationmaster.executions_active) as starting,
       (select count(*) filter (where state = 'RUNNING') from stationmaster.executions_active) as running,
       (select count(*) from stationmaster.executions_finished
        where finished_at > now() - interval '1 minute' and status = 'COMPLETED') as completed_last_minute,
       (select count(*) from stationmaster.executions_finished
        where finished_at > now() - interval '1 minute' and status is distinct from 'COMPLETED') as failed_last_minute,
       (select count(*) from stationmaster.servers where lease_until > now()) as servers,
       (select coalesce(bool_and(engine_up), false) from stationmaster.servers where lease_until > now()) as engine_up
