-- Says that somebody looks into this lane again every few milliseconds for a while, so that nobody needs to ring. Called by the
-- claim loops and by dispatchers when they have found work, at most every few hundred milliseconds. Locks the lane's row, or leaves it when
-- somebody else has just said the same. Of executions it is said in queue_watched too, where an enqueue reads it. Index: attention_pkey.
-- $1 lane (executions, alarms, or a dispatcher's id), $2 seconds, $3 how far virtual time has come (null: the lane has none).
with renewed as (
    update stationmaster_internal.attention
    set until = clock_timestamp() + make_interval(secs => $2), virtual_time = greatest(virtual_time, $3)
    where lane = (select lane from stationmaster_internal.attention
                  where lane = $1 and until < clock_timestamp() + make_interval(secs => $2 / 2)
                  for update skip locked)
    returning lane, until
), made as (
    insert into stationmaster_internal.attention (lane, until)
    select $1, clock_timestamp() + make_interval(secs => $2)
    where not exists (select from stationmaster_internal.attention where lane = $1)
    on conflict do nothing
)
select setval('stationmaster_internal.queue_watched', (date_part('epoch', until) * 1000)::bigint)
from renewed
where lane = 'executions'
