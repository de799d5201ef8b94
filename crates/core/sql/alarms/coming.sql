-- Alarms that fire within a time, the soonest first, with what tells when: for a calendar of all of them. Called for people. Locks nothing.
-- Planned anew for each scope. Index: alarm_standings_due, alarm_definitions_pkey.
-- $1 workspaces (null: any), $2 up to this instant, $3 how many.
with due as (
    select s.alarm_id, s.next_due_at
    from stationmaster_internal.alarm_standings s
    where s.next_due_at is not null and not s.held and s.next_due_at < $2
      and ($1::uuid[] is null or exists (select from stationmaster_internal.alarm_definitions d where d.id = s.alarm_id and d.workspace_id = any ($1)))
    order by s.next_due_at, s.alarm_id
    limit $3
)
select a.id, a.workspace_id, (select w.name from stationmaster.workspaces w where w.id = a.workspace_id) as workspace, a.name, a.label, a.next_fire_at,
       a.fire_at, to_char(a.civil_at, 'YYYY-MM-DD"T"HH24:MI:SS') as civil_at, a.cron_expr, a.timezone, a.dst, a.start_at, a.end_at, a.created_at
from due
cross join lateral (select * from stationmaster.alarms a where a.id = due.alarm_id offset 0) a
where a.next_fire_at is not null
order by due.next_due_at, a.id
