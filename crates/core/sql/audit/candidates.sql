-- Lines of the audit that may be on a page, newest first, by what an index can tell. Called for people. Locks nothing. Planned
-- anew for each filter. Index: audit_pkey, audit_by_workspace, audit_at. $1 workspaces (null: any), $2 before this place, $3 how many,
-- $4 at this time or later, $5 before this time (null: any).
-- Those of a workspace are asked for as a stretch of its index: by the order of another the way leads past those of everybody else.
with candidates as (
    (select a.id
     from stationmaster.audit a
     where $1::uuid[] is null and a.id < $2
       and ($4::timestamptz is null or a.at >= $4) and ($5::timestamptz is null or a.at < $5)
     order by a.id desc
     limit $3)
    union all
    select mine.id
    from unnest($1::uuid[]) as w (id)
    cross join lateral (
        select a.id
        from stationmaster.audit a
        where a.workspace_id >= w.id and (a.workspace_id, a.id) < (w.id, $2)
          and ($4::timestamptz is null or a.at >= $4) and ($5::timestamptz is null or a.at < $5)
        order by a.workspace_id desc, a.id desc
        limit $3) mine
)
select id
from candidates
order by id desc
limit $3
