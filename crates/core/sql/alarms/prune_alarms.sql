-- Removes alarms that ended longer ago than the retention time and have nothing left on record, with their events. Called by
-- housekeeping, a small batch at a time. Locks rows of alarm_standings, skipping what others hold. Index:
-- alarm_standings_ended. $1 retention in seconds, $2 how many.
with old as materialized (
    select s.alarm_id
    from stationmaster_internal.alarm_standings s
    where s.ended_at < now() - make_interval(secs => $1)
      and not exists (select from stationmaster_internal.occurrences_open o where o.alarm_id = s.alarm_id)
      and not exists (select from stationmaster_internal.occurrences_finished f where f.alarm_id = s.alarm_id)
    order by s.ended_at
    limit $2
    for update skip locked
), events as (
    delete from stationmaster_internal.alarm_events e
    where e.alarm_id = any (array(select alarm_id from old))
), definitions as (
    delete from stationmaster_internal.alarm_definitions d
    where d.id = any (array(select alarm_id from old))
), removed as (
    delete from stationmaster_internal.alarm_standings s
    where s.alarm_id = any (array(select alarm_id from old))
    returning s.alarm_id
)
select count(*)
from removed
