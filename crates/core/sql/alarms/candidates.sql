-- Alarms that may be on a page, newest first, by what an index can tell. Called for people. Locks nothing. Planned anew for each
-- filter. Index: alarm_definitions_pkey, alarm_definitions_by_workspace, alarm_standings_stopped.
-- $1 workspaces (null: any), $2 status, if it is one that few have (null otherwise), $3 before this id, $4 how many.
-- Those of a workspace are asked for as a stretch of its index: by the order of another the way leads past those of everybody else.
with candidates as (
    (select d.id
     from stationmaster_internal.alarm_definitions d
     where $1::uuid[] is null and $2::text is null and d.id < $3
     order by d.id desc
     limit $4)
    union all
    select mine.id
    from unnest($1::uuid[]) as w (id)
    cross join lateral (
        select d.id
        from stationmaster_internal.alarm_definitions d
        where $2 is null and d.workspace_id >= w.id and (d.workspace_id, d.id) < (w.id, $3)
        order by d.workspace_id desc, d.id desc
        limit $4) mine
    union all
    (select s.alarm_id
     from stationmaster_internal.alarm_standings s
     where s.status = $2 and s.status in ('paused', 'failed') and s.alarm_id < $3
     order by s.alarm_id desc
     limit $4)
)
select id
from candidates
order by id desc
limit $4
