-- Puts the next fires of alarms where claims find them. Called when alarms are set, resumed or edited, and by the planner.
-- The caller has locked the alarms. Index: alarm_standings_pkey. $1 alarms, $2 next nominal instants, $3 the same with
-- jitter, $4 the instants that they follow, $5 notes. A paused alarm is given its next instant but nothing to claim.
with planned as (
    delete from stationmaster_internal.alarm_unplanned u
    where u.alarm_id = any ($1)
), resolved as (
    update stationmaster_internal.alarm_definitions d
    set fire_at = p.next_fire_at
    from unnest($1::uuid[], $2::timestamptz[]) as p (alarm_id, next_fire_at)
    where d.id = p.alarm_id and d.kind = 'once' and d.civil_at is not null
)
update stationmaster_internal.alarm_standings s
set next_fire_at = p.next_fire_at, next_due_at = case when s.status = 'active' then p.next_due_at end, follows_at = p.follows_at,
    note = p.note
from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[], $5::text[])
    as p (alarm_id, next_fire_at, next_due_at, follows_at, note)
where s.alarm_id = p.alarm_id and s.status in ('active', 'paused')
