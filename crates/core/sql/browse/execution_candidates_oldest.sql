-- Ids of executions that may be on a page, oldest first: execution_candidates.sql the other way round, by the same indexes. Locks nothing. Planned anew for each
-- filter, so that only the branches of the status asked for are read. A time asks for executions that have ended,
-- unless the status asked for is of what has not: that is listed whatever the time.
-- Index: executions_active_pkey, queue_pending_by_execution, executions_finished_pkey, executions_finished_by_workspace,
-- executions_finished_badly, executions_finished_at.
-- $1 workspaces, $2 status, $3 ended at or after, $4 ended before (null: any), $5 above this id, $6 how many, $7 of what ended badly
-- also what a retry has followed.
-- Those of a workspace are asked for as a stretch of its index: by the order of another the way leads past those of everybody else.
with candidates as (
    (select a.execution_id as id
     from stationmaster_internal.executions_active a
     where ($2::text is null or a.state = $2) and ($2 is not null or ($3::timestamptz is null and $4::timestamptz is null))
       and ($1::uuid[] is null or a.workspace_id = any ($1)) and a.execution_id > $5
     order by a.execution_id
     limit $6)
    union all
    (select p.execution_id
     from stationmaster_internal.queue_pending p
     where ($2::text is null or $2 = 'PENDING') and ($2 is not null or ($3::timestamptz is null and $4::timestamptz is null))
       and p.execution_id is not null and ($1::uuid[] is null or p.workspace_id = any ($1)) and p.execution_id > $5
     order by p.execution_id
     limit $6)
    union all
    (select f.execution_id
     from stationmaster_internal.executions_finished f
     where ($2::text is null or $2 = 'COMPLETED') and $1::uuid[] is null and f.status is not null and f.execution_id > $5
       and ($2::text is null or f.status = 'COMPLETED')
       and ($3::timestamptz is null or f.finished_at >= $3) and ($4::timestamptz is null or f.finished_at < $4)
     order by f.execution_id
     limit $6)
    union all
    select mine.execution_id
    from unnest($1::uuid[]) as w (id)
    cross join lateral (
        select f.execution_id
        from stationmaster_internal.executions_finished f
        where ($2::text is null or $2 = 'COMPLETED') and f.workspace_id <= w.id and f.status is not null
          and (f.workspace_id, f.execution_id) > (w.id, $5)
          and ($2::text is null or f.status = 'COMPLETED')
          and ($3::timestamptz is null or f.finished_at >= $3) and ($4::timestamptz is null or f.finished_at < $4)
        order by f.workspace_id, f.execution_id
        limit $6) mine
    union all
    (select f.execution_id
     from stationmaster_internal.executions_finished f
     where $2 in ('FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT') and coalesce(f.status, '') <> 'COMPLETED' and f.status = $2
       and ($7 or f.superseded_at is null)
       and ($1::uuid[] is null or f.workspace_id = any ($1)) and f.execution_id > $5
       and ($3::timestamptz is null or f.finished_at >= $3) and ($4::timestamptz is null or f.finished_at < $4)
     order by f.execution_id
     limit $6)
)
select id
from candidates
order by id
limit $6
