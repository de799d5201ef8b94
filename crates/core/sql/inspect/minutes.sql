-- What ended in each of the last minutes, for charts; nothing, when more ended in them than are counted. Called by the API. Locks
-- nothing. Planned anew for each scope. Index: executions_finished_at (brin). $1 workspaces (null: all), $2 how many minutes,
-- $3 how many are counted.
with counted as materialized (
    select date_trunc('minute', finished_at) as at, coalesce(status, item_status) as status
    from stationmaster_internal.executions_finished
    where finished_at >= date_trunc('minute', now()) - make_interval(mins => $2 - 1)
      and ($1::uuid[] is null or workspace_id = any ($1))
    limit $3 + 1
), ended as (
    select at, count(*) filter (where status = 'COMPLETED') as completed,
           count(*) filter (where status in ('FAILED', 'TERMINATED', 'TIMED_OUT')) as failed,
           count(*) filter (where status = 'CANCELLED') as cancelled
    from counted
    group by at
)
select m.at, coalesce(e.completed, 0) as completed, coalesce(e.failed, 0) as failed, coalesce(e.cancelled, 0) as cancelled
from generate_series(date_trunc('minute', now()) - make_interval(mins => $2 - 1), date_trunc('minute', now()),
                     interval '1 minute') as m (at)
left join ended e using (at)
where (select count(*) from counted) <= $3
order by m.at
