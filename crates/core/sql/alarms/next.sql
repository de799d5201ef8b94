-- Alarms that are due next, those that are late first; or, instead, alarms whose last occurrences failed. Called for the overview. Locks
-- nothing. Planned anew for each scope. Index: alarm_standings_due, alarm_standings_failing, alarm_definitions_pkey.
-- $1 workspaces (null: any), $2 how many, $3 those that fail.
with due as (
    select s.alarm_id, row_number() over (order by s.next_due_at) as place
    from stationmaster_internal.alarm_standings s
    where not $3 and s.next_due_at is not null and not s.held
      and ($1::uuid[] is null or exists (select from stationmaster_internal.alarm_definitions d where d.id = s.alarm_id and d.workspace_id = any ($1)))
    order by s.next_due_at
    limit $2
), failing as (
    select s.alarm_id, row_number() over (order by s.failed_in_a_row desc, s.alarm_id) as place
    from stationmaster_internal.alarm_standings s
    where $3 and s.failed_in_a_row > 0 and s.status in ('active', 'paused')
      and ($1::uuid[] is null or exists (select from stationmaster_internal.alarm_definitions d where d.id = s.alarm_id and d.workspace_id = any ($1)))
    order by place
    limit $2
)
select alarm_id
from (select * from due union all select * from failing) told
order by place
