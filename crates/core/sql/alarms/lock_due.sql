-- Locks alarms whose next occurrence is due, earliest first, skipping what others hold, and says what is needed to move
-- their series on. First statement of a claim; the second one makes the occurrences. Locks rows of alarm_standings.
-- Index: alarm_standings_due, alarm_definitions_pkey; `offset 0` keeps the join to one look by key for each row. $1 the instant (in seconds since 1970) to look from, $2 how many.
with due as materialized (
    select s.alarm_id, s.next_fire_at, s.next_due_at, s.free_at, s.note, s.last_fired_at
    from stationmaster_internal.alarm_standings s
    where s.next_due_at >= to_timestamp($1) and s.next_due_at <= now() and s.next_due_at is not null and not s.held
    order by s.next_due_at
    limit $2
    for update skip locked
)
select due.alarm_id, due.next_fire_at, due.next_due_at, due.free_at, due.note, due.last_fired_at, d.kind, d.cron_expr,
       d.timezone, d.dst, d.misfire, d.catch_up, extract(epoch from d.misfire_window)::double precision as misfire_window,
       d.overlap, extract(epoch from d.jitter)::double precision as jitter, d.start_at, d.end_at, d.created_at, now() as now
from due
cross join lateral (select * from stationmaster_internal.alarm_definitions where id = due.alarm_id offset 0) d
order by due.next_due_at
