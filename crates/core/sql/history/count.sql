-- Counts what happened in each of some minutes, by workspace and workflow and in all, and keeps it; a minute that is counted again
-- replaces what was kept when more is known of it. Nothing is written of a minute in which nothing happened. Called by one server for all
-- (duty history), once a minute. Locks the rows that it writes. Answers how much has happened.
-- How long starts had to wait is asked of a part of them, spread evenly, when there are many: each costs a look at its item. Of very many
-- items and executions one in so many is counted, for as many as it stands for: reading a row costs little, sorting it in costs more.
-- Index: executions_finished_at, queue_items_at, occurrences_finished_at (all brin), queue_items_pkey; what runs and what waits is read whole.
-- $1 from, $2 to, $3 the minute that what runs and waits now is counted to (null: none), $4 how many starts are asked how long they waited,
-- $5 how many workspaces and workflows are kept of a minute, those with the most, $6 bounds of the lengths of time, in seconds,
-- $7 one in how many is counted; a power of two.
with ended as materialized (
    select date_trunc('minute', finished_at) as minute, workspace_id, workflow_definition_id, lower(coalesce(status, item_status)) as word,
           greatest(extract(epoch from coalesce(closed_at, finished_at) - dispatched_at), 0)::double precision as seconds
    from stationmaster_internal.executions_finished
    where finished_at >= $1 and finished_at < $2 and uuid_hash(execution_id) & ($7::integer - 1) = 0
), started as materialized (
    select date_trunc('minute', dispatched_at) as minute, workspace_id, workflow_definition_id, execution_id, item_id, dispatched_at
    from stationmaster_internal.executions_active
    where dispatched_at >= $1 and dispatched_at < $2 and uuid_hash(execution_id) & ($7::integer - 1) = 0
    union all
    select date_trunc('minute', dispatched_at), workspace_id, workflow_definition_id, execution_id, item_id, dispatched_at
    from stationmaster_internal.executions_finished
    where finished_at >= $1 and dispatched_at >= $1 and dispatched_at < $2 and uuid_hash(execution_id) & ($7::integer - 1) = 0
), waited as (
    select s.minute, s.workspace_id, s.workflow_definition_id,
           greatest(extract(epoch from s.dispatched_at - greatest(i.created_at, i.run_at)), 0)::double precision as seconds
    from started s
    cross join lateral (select created_at, run_at from stationmaster_internal.queue_items i where i.id = s.item_id limit 1) i
    -- What follows a retry has waited since the retry, which nobody has written down.
    where s.execution_id = s.item_id
      and hashtextextended(s.item_id::text, 0) % greatest((select count(*) from started) / $4, 1) = 0
), fires as (
    select date_trunc('minute', o.finished_at) as minute, d.workspace_id, o.status, o.fired_at - o.due_at > interval '1 second' as late
    from stationmaster_internal.occurrences_finished o
    join stationmaster_internal.alarm_definitions d on d.id = o.alarm_id
    where o.finished_at >= $1 and o.finished_at < $2 and o.status in ('fired', 'failed')
), facts as (
    select minute, workspace_id, workflow_definition_id, word, null::integer as bucket, $7::integer * count(*) as amount, 0::double precision as seconds,
           0::double precision as longest
    from ended
    group by minute, workspace_id, workflow_definition_id, word
    union all
    select minute, workspace_id, workflow_definition_id, 'ran', width_bucket(seconds, $6::double precision[]), $7::integer * count(*), $7::integer * sum(seconds), max(seconds)
    from ended
    where seconds is not null
    group by minute, workspace_id, workflow_definition_id, 5
    union all
    select minute, workspace_id, workflow_definition_id, 'started', null, $7::integer * count(*), 0, 0
    from started
    group by minute, workspace_id, workflow_definition_id
    union all
    select minute, workspace_id, workflow_definition_id, 'waited', width_bucket(seconds, $6::double precision[]), count(*), sum(seconds), max(seconds)
    from waited
    group by minute, workspace_id, workflow_definition_id, 5
    union all
    select date_trunc('minute', created_at), workspace_id, workflow_definition_id, 'enqueued', null, $7::integer * count(*), 0, 0
    from stationmaster_internal.queue_items
    where created_at >= $1 and created_at < $2 and uuid_hash(id) & ($7::integer - 1) = 0
    group by date_trunc('minute', created_at), workspace_id, workflow_definition_id
    union all
    select minute, workspace_id, '00000000-0000-0000-0000-000000000000', 'alarms_' || status, null, count(*), 0, 0
    from fires
    group by minute, workspace_id, status
    union all
    select minute, workspace_id, '00000000-0000-0000-0000-000000000000', 'alarms_late', null, count(*), 0, 0
    from fires
    where late
    group by minute, workspace_id
    union all
    select $3, workspace_id, workflow_definition_id, 'waiting', null, count(*), 0, 0
    from stationmaster_internal.queue_pending
    where stage = 'ready' and $3::timestamptz is not null
    group by workspace_id, workflow_definition_id
    union all
    select $3, workspace_id, workflow_definition_id, 'active', null, count(*), 0, 0
    from stationmaster_internal.executions_active
    where $3::timestamptz is not null
    group by workspace_id, workflow_definition_id
), summed as materialized (
    select minute, coalesce(workspace_id, '00000000-0000-0000-0000-000000000000') as workspace_id,
           coalesce(workflow_definition_id, '00000000-0000-0000-0000-000000000000') as workflow_definition_id,
           word, bucket, sum(amount)::bigint as amount, sum(seconds) as seconds, max(longest) as longest
    from facts
    group by grouping sets ((minute, workspace_id, workflow_definition_id, word, bucket), (minute, word, bucket))
), spread as (
    select k.minute, k.workspace_id, k.workflow_definition_id, k.word, array_agg(coalesce(s.amount, 0)::integer order by b.bucket) as buckets
    from (select distinct minute, workspace_id, workflow_definition_id, word from summed where bucket is not null) k
    cross join generate_series(0, cardinality($6::double precision[])) as b (bucket)
    left join summed s using (minute, workspace_id, workflow_definition_id, word, bucket)
    group by k.minute, k.workspace_id, k.workflow_definition_id, k.word
), counted as (
    select minute, workspace_id, workflow_definition_id,
           coalesce(sum(amount) filter (where word = 'enqueued'), 0)::bigint as enqueued,
           coalesce(sum(amount) filter (where word = 'started'), 0)::bigint as started,
           coalesce(sum(amount) filter (where word = 'completed'), 0)::bigint as completed,
           coalesce(sum(amount) filter (where word = 'failed'), 0)::bigint as failed,
           coalesce(sum(amount) filter (where word = 'cancelled'), 0)::bigint as cancelled,
           coalesce(sum(amount) filter (where word = 'terminated'), 0)::bigint as terminated,
           coalesce(sum(amount) filter (where word = 'timed_out'), 0)::bigint as timed_out,
           coalesce(sum(amount) filter (where word = 'alarms_fired'), 0)::bigint as alarms_fired,
           coalesce(sum(amount) filter (where word = 'alarms_failed'), 0)::bigint as alarms_failed,
           coalesce(sum(amount) filter (where word = 'alarms_late'), 0)::bigint as alarms_late,
           case when minute = $3 then coalesce(sum(amount) filter (where word = 'waiting'), 0)::bigint end as waiting,
           case when minute = $3 then coalesce(sum(amount) filter (where word = 'active'), 0)::bigint end as active,
           coalesce(sum(seconds) filter (where word = 'waited'), 0) as wait_seconds,
           coalesce(max(longest) filter (where word = 'waited'), 0) as wait_longest,
           coalesce(sum(seconds) filter (where word = 'ran'), 0) as run_seconds,
           coalesce(max(longest) filter (where word = 'ran'), 0) as run_longest,
           coalesce(sum(amount) filter (where word not in ('waiting', 'active', 'waited', 'ran', 'alarms_late')), 0)::bigint as moved,
           sum(amount) as weight
    from summed
    group by minute, workspace_id, workflow_definition_id
), ranked as (
    select c.*, w.buckets as waits, r.buckets as runs,
           row_number() over (partition by c.minute, c.workspace_id = '00000000-0000-0000-0000-000000000000'
                              order by c.weight desc, c.workspace_id, c.workflow_definition_id) as place
    from counted c
    left join spread w on (w.minute, w.workspace_id, w.workflow_definition_id, w.word) = (c.minute, c.workspace_id, c.workflow_definition_id, 'waited')
    left join spread r on (r.minute, r.workspace_id, r.workflow_definition_id, r.word) = (c.minute, c.workspace_id, c.workflow_definition_id, 'ran')
), kept as (
    insert into stationmaster_internal.history_minutes as h
        (minute, workspace_id, workflow_definition_id, moved, enqueued, started, completed, failed, cancelled, terminated, timed_out,
         alarms_fired, alarms_failed, alarms_late, waiting, active, wait_seconds, wait_longest, waits, run_seconds, run_longest, runs)
    select minute, workspace_id, workflow_definition_id, moved, enqueued, started, completed, failed, cancelled, terminated, timed_out,
           alarms_fired, alarms_failed, alarms_late, waiting, active, wait_seconds, wait_longest, waits, run_seconds, run_longest, runs
    from ranked
    where place <= $5
    on conflict (workspace_id, minute, workflow_definition_id) do update
        set moved = excluded.moved, enqueued = excluded.enqueued, started = excluded.started, completed = excluded.completed,
            failed = excluded.failed, cancelled = excluded.cancelled, terminated = excluded.terminated, timed_out = excluded.timed_out,
            alarms_fired = excluded.alarms_fired, alarms_failed = excluded.alarms_failed, alarms_late = excluded.alarms_late,
            waiting = coalesce(h.waiting, excluded.waiting), active = coalesce(h.active, excluded.active),
            wait_seconds = excluded.wait_seconds, wait_longest = excluded.wait_longest, waits = excluded.waits,
            run_seconds = excluded.run_seconds, run_longest = excluded.run_longest, runs = excluded.runs
        where excluded.moved > h.moved
)
select coalesce(sum(moved), 0)::bigint
from counted
where workspace_id = '00000000-0000-0000-0000-000000000000'
