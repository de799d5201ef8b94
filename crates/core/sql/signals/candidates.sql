-- Signals that may be on a page, newest first, by what an index can tell. Called for people. Locks nothing. Planned anew for each
-- filter. Index: signals_inbox_seq, signals_inbox_by_project, signals_inbox_at.
-- $1 project (null: any), $2 only of projects of these workspaces (null: any), $3 older than this position, $4 how many,
-- $5 received at this time or later, $6 received before this time (null: any).
-- Those of a project are asked for as a stretch of its index: by the order of another the way leads past those of everybody else.
with projects as (
    select p.name
    from stationmaster.projects p
    where p.workspace_id = any ($2) and ($1::text is null or p.name = $1)
    union all
    select $1
    where $2::uuid[] is null and $1 is not null
), candidates as (
    (select s.seq
     from stationmaster_internal.signals_inbox s
     where $1 is null and $2 is null and s.seq < $3
       and ($5::timestamptz is null or s.received_at >= $5) and ($6::timestamptz is null or s.received_at < $6)
     order by s.seq desc
     limit $4)
    union all
    select mine.seq
    from projects
    cross join lateral (
        select s.seq
        from stationmaster_internal.signals_inbox s
        where s.project >= projects.name and (s.project, s.seq) < (projects.name, $3)
          and ($5::timestamptz is null or s.received_at >= $5) and ($6::timestamptz is null or s.received_at < $6)
        order by s.project desc, s.seq desc
        limit $4) mine
)
select seq
from candidates
order by seq desc
limit $4
