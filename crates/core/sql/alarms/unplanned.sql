-- Alarms whose next fire a server has to work out, with what it needs for that. Called by the planner.
-- Locks their rows of alarm_standings, skipping what others hold. Index: alarm_unplanned_pkey. $1 how many.
with waiting as materialized (
    select u.alarm_id, u.reason, s.next_fire_at, s.follows_at
    from stationmaster_internal.alarm_unplanned u
    join stationmaster_internal.alarm_standings s on s.alarm_id = u.alarm_id
    order by u.alarm_id
    limit $1
    for update of s skip locked
)
select w.alarm_id, w.reason, w.next_fire_at, w.follows_at, d.kind, d.fire_at, d.cron_expr, d.civil_at::text as civil_at, d.timezone,
       d.dst, extract(epoch from d.jitter)::double precision as jitter, d.start_at, d.end_at, d.created_at,
       now() as now
from waiting w
cross join lateral (select * from stationmaster_internal.alarm_definitions where id = w.alarm_id offset 0) d
