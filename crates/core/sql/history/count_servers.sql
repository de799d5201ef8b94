-- Counts what each server started and brought to an end in each of some minutes, and keeps it; a minute that is counted again replaces what
-- was kept when more is known of it. Called by one server for all (duty history), once a minute. Locks the rows that it writes.
-- Index: executions_finished_at (brin); what runs is read whole.
-- $1 from, $2 to, $3 the minute that what runs now is counted to (null: none), $4 bounds of the lengths of time, in seconds, $5 one in how
-- many is counted; a power of two.
with ended as materialized (
    select date_trunc('minute', finished_at) as minute, holder, lower(coalesce(status, item_status)) as word, dispatched_at,
           greatest(extract(epoch from coalesce(closed_at, finished_at) - dispatched_at), 0)::double precision as seconds, finished_at < $2 as over
    from stationmaster_internal.executions_finished
    where finished_at >= $1 and holder is not null and uuid_hash(execution_id) & ($5::integer - 1) = 0
), facts as (
    select minute, holder, word, null::integer as bucket, $5::integer * count(*) as amount, 0::double precision as seconds, 0::double precision as longest
    from ended
    where over
    group by minute, holder, word
    union all
    select minute, holder, 'ran', width_bucket(seconds, $4::double precision[]), $5::integer * count(*), $5::integer * sum(seconds), max(seconds)
    from ended
    where over and seconds is not null
    group by minute, holder, 4
    union all
    select date_trunc('minute', dispatched_at), holder, 'started', null, $5::integer * count(*), 0, 0
    from ended
    where dispatched_at >= $1 and dispatched_at < $2
    group by 1, holder
    union all
    select date_trunc('minute', dispatched_at), holder, 'started', null, count(*), 0, 0
    from stationmaster_internal.executions_active
    where dispatched_at >= $1 and dispatched_at < $2
    group by 1, holder
    union all
    select $3, holder, 'active', null, count(*), 0, 0
    from stationmaster_internal.executions_active
    where $3::timestamptz is not null
    group by holder
), summed as materialized (
    select minute, holder, word, bucket, sum(amount)::bigint as amount, sum(seconds) as seconds, max(longest) as longest
    from facts
    group by minute, holder, word, bucket
), spread as (
    select k.minute, k.holder, array_agg(coalesce(s.amount, 0)::integer order by b.bucket) as buckets
    from (select distinct minute, holder from summed where word = 'ran') k
    cross join generate_series(0, cardinality($4::double precision[])) as b (bucket)
    left join summed s on (s.minute, s.holder, s.word, s.bucket) = (k.minute, k.holder, 'ran', b.bucket)
    group by k.minute, k.holder
), counted as (
    select minute, holder,
           coalesce(sum(amount) filter (where word not in ('active', 'ran')), 0)::bigint as moved,
           coalesce(sum(amount) filter (where word = 'started'), 0)::bigint as started,
           coalesce(sum(amount) filter (where word = 'completed'), 0)::bigint as completed,
           coalesce(sum(amount) filter (where word = 'failed'), 0)::bigint as failed,
           coalesce(sum(amount) filter (where word = 'cancelled'), 0)::bigint as cancelled,
           coalesce(sum(amount) filter (where word = 'terminated'), 0)::bigint as terminated,
           coalesce(sum(amount) filter (where word = 'timed_out'), 0)::bigint as timed_out,
           case when minute = $3 then coalesce(sum(amount) filter (where word = 'active'), 0)::bigint end as active,
           coalesce(sum(seconds) filter (where word = 'ran'), 0) as run_seconds,
           coalesce(max(longest) filter (where word = 'ran'), 0) as run_longest
    from summed
    group by minute, holder
)
insert into stationmaster_internal.history_servers as h
    (server_id, minute, moved, started, completed, failed, cancelled, terminated, timed_out, active, run_seconds, run_longest, runs)
select c.holder, c.minute, c.moved, c.started, c.completed, c.failed, c.cancelled, c.terminated, c.timed_out, c.active, c.run_seconds, c.run_longest, s.buckets
from counted c
left join spread s on s.minute = c.minute and s.holder = c.holder
on conflict (server_id, minute) do update
    set moved = excluded.moved, started = excluded.started, completed = excluded.completed, failed = excluded.failed,
        cancelled = excluded.cancelled, terminated = excluded.terminated, timed_out = excluded.timed_out,
        active = coalesce(h.active, excluded.active), run_seconds = excluded.run_seconds, run_longest = excluded.run_longest, runs = excluded.runs
    where excluded.moved > h.moved
