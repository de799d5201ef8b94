-- What is wrong with the turns of alarms: what docs/invariants.md says under "Turns", read from the tables. No row: nothing is.
with standing as (
    select s.alarm_id, s.status, s.held, d.kind = 'cron' and d.overlap <> 'allow' as in_turns
    from stationmaster_internal.alarm_standings s
    join stationmaster_internal.alarm_definitions d on d.id = s.alarm_id
), open as (
    select alarm_id, count(*) as open, count(*) filter (where holder is not null) as in_hands,
           count(*) filter (where holder is null and ready_at < 'infinity') as free,
           count(*) filter (where holder is null and ready_at = 'infinity') as parked,
           min(scheduled_for) as first, min(scheduled_for) filter (where holder is null and ready_at < 'infinity') as turn
    from stationmaster_internal.occurrences_open
    where origin = 'schedule'
    group by alarm_id
)
select s.alarm_id || ': ' || problem
from standing s
left join open o using (alarm_id)
cross join lateral (values
    (s.status = 'paused' and o.free > 0, 'it is paused, and something of it may be claimed'),
    (s.status = 'active' and not s.in_turns and o.parked > 0, 'nothing takes turns, and something waits for ever'),
    (s.status = 'active' and s.in_turns and o.in_hands > 0 and o.free > 0, 'one is in hands, and another may be claimed'),
    (s.status = 'active' and s.in_turns and o.in_hands = 0 and o.free <> 1, 'none is in hands, and not just one may be claimed'),
    (s.status = 'active' and s.in_turns and o.in_hands = 0 and o.turn <> o.first, 'it is not the turn of the earliest'),
    (s.held <> (s.status in ('active', 'paused') and s.in_turns and o.open is not null), 'its series waits, and for nothing, or does not')
) as found (is_so, problem)
where is_so
