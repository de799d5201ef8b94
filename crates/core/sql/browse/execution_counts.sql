-- How many executions are in each status, looking at no more than a bound of each kind, the newest: where it was reached there may be more. Called
-- by people. Locks nothing. Planned anew for each filter. Index: executions_active_pkey, queue_pending_by_execution, executions_finished_pkey,
-- executions_finished_by_workspace, executions_finished_badly.
-- $1 workspaces, $2 definition, $3 ended at or after, $4 ended before (null: any; what has not ended is counted whatever the time), $5 the bound, $6 that of what ended well where no
-- workspace narrows it.
with active as (
    select a.workflow_definition_id, a.state as status
    from stationmaster_internal.executions_active a
    where ($1::uuid[] is null or a.workspace_id = any ($1))
    limit $5
), again as (
    select p.workspace_id, p.workflow_definition_id
    from stationmaster_internal.queue_pending p
    where p.execution_id is not null
    limit $5
), ended as (
    (select f.workflow_definition_id, f.status, f.superseded_at, f.finished_at
     from stationmaster_internal.executions_finished f
     where $1 is null
     order by f.execution_id desc
     limit $6)
    union all
    (select mine.workflow_definition_id, mine.status, mine.superseded_at, mine.finished_at
     from unnest($1) as w (id)
     cross join lateral (
         select f.workflow_definition_id, f.status, f.superseded_at, f.finished_at
         from stationmaster_internal.executions_finished f
         where f.workspace_id = w.id
         order by f.workspace_id desc, f.execution_id desc
         limit $5) mine
     limit $5)
), badly as (
    select f.workflow_definition_id, f.status, f.superseded_at, f.finished_at
    from stationmaster_internal.executions_finished f
    where $1 is null and coalesce(f.status, '') <> 'COMPLETED'
    order by f.execution_id desc
    limit $5
), looked as (
    select workflow_definition_id, status
    from active
    union all
    select workflow_definition_id, 'PENDING'
    from again
    where $1 is null or workspace_id = any ($1)
    union all
    select workflow_definition_id, status
    from ended
    where (status = 'COMPLETED' or ($1 is not null and superseded_at is null))
      and ($3::timestamptz is null or finished_at >= $3) and ($4::timestamptz is null or finished_at < $4)
    union all
    select workflow_definition_id, status
    from badly
    where superseded_at is null and ($3::timestamptz is null or finished_at >= $3) and ($4::timestamptz is null or finished_at < $4)
), counted as (
    select l.status, count(*) as count
    from looked l
    where $2::uuid is null or l.workflow_definition_id = $2
    group by l.status
), reached as (
    select (select count(*) from active) >= $5 as active, (select count(*) from again) >= $5 as again,
           (select count(*) from ended) >= case when $1 is null then $6 else $5 end as ended, (select count(*) from badly) >= $5 as badly
), fuller as (
    select active, again, ended, case when $1 is null then badly else ended end as badly
    from reached
)
select known.status, coalesce(c.count, 0) as count, known.more
from fuller f
cross join lateral (values ('PENDING', f.again), ('STARTING', f.active), ('RUNNING', f.active), ('COMPLETED', f.ended), ('FAILED', f.badly),
                           ('TIMED_OUT', f.badly), ('TERMINATED', f.badly), ('CANCELLED', f.badly)) as known (status, more)
left join counted c on c.status = known.status
