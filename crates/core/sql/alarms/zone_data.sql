-- Notes the release of the time zone data that this program has. When it is newer than the one that the stored instants were
-- computed with, every alarm that depends on it is planned anew. Called by the planner when a server starts, and now and
-- then. Locks the one row. $1 release. Answers how many alarms are to be planned anew.
with newer as (
    insert into stationmaster_internal.zone_data as z (one, version)
    values (true, $1)
    on conflict (one) do update
        set version = excluded.version
        where z.version < excluded.version
    -- A row that was there before has been locked by this very statement.
    returning z.version, z.xmax::text <> '0' as replaced
), again as (
    insert into stationmaster_internal.alarm_unplanned (alarm_id, reason)
    select s.alarm_id, 'zone data ' || newer.version
    from newer, stationmaster_internal.alarm_standings s
    join stationmaster_internal.alarm_definitions d on d.id = s.alarm_id
    where newer.replaced and s.status in ('active', 'paused') and s.next_fire_at is not null and (d.kind = 'cron' or d.civil_at is not null)
    on conflict do nothing
    returning alarm_id
)
select count(*)
from again
