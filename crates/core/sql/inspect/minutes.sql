-- What ended in each of the last minutes, for charts. Called by the API. Locks nothing.
-- Index: executions_finished_at (brin). $1 workspaces (null: all), $2 how many minutes.
with ended as (
    select date_trunc('minute', finished_at) as at, count(*) filter (where status = 'COMPLETED') as completed,
           count(*) filter (where status is distinct from 'COMPLETED') as failed
    from stationmaster_internal.executions_finished
    where finished_at >= date_trunc('minute', now()) - make_interval(mins => $2 - 1)
      and ($1::uuid[] is null or workspace_id = any ($1))
    group by 1
)
select m.at, coalesce(e.completed, 0) as completed, coalesce(e.failed, 0) as failed
from generate_series(date_trunc('minute', now()) - make_interval(mins => $2 - 1), date_trunc('minute', now()),
                     interval '1 minute') as m (at)
left join ended e using (at)
order by m.at
