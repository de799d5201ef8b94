-- The state of the whole in one row, for the overview, or of some workspaces. Called by the page. Locks nothing.
-- Backlogs beyond 100,000 are the planner's estimate, or 100,001 for some workspaces; the last minute is found by the brin
-- index; failures are counted up to 10,000. $1 workspaces (null: all).
select case when $1::uuid[] is not null
            then (select count(*) from (select from stationmaster_internal.queue_pending where workspace_id = any ($1) limit 100001) counted)
            else (select case when reltuples < 100000 then (select count(*) from stationmaster_internal.queue_pending)
                              else reltuples::bigint end
                  from pg_class where oid = 'stationmaster_internal.queue_pending'::regclass) end as waiting,
       active.starting, active.running, ended.completed_last_minute, ended.failed_last_minute,
       (select count(*) from (select from stationmaster_internal.failures
                              where set_aside_at is null and ($1::uuid[] is null or workspace_id = any ($1)) limit 10001) counted) as failures,
       (select count(*) from stationmaster_internal.servers where lease_until > now()) as servers,
       (select coalesce(bool_and(engine_up), false) from stationmaster_internal.servers where lease_until > now()) as engine_up
from (select count(*) filter (where state = 'STARTING') as starting, count(*) filter (where state = 'RUNNING') as running
      from stationmaster_internal.executions_active
      where $1::uuid[] is null or workspace_id = any ($1)) active
cross join (select count(*) filter (where status = 'COMPLETED') as completed_last_minute,
                   count(*) filter (where coalesce(status, item_status) in ('FAILED', 'TERMINATED', 'TIMED_OUT')) as failed_last_minute
            from stationmaster_internal.executions_finished
            where finished_at > now() - interval '1 minute' and ($1::uuid[] is null or workspace_id = any ($1))) ended
