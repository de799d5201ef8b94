-- Settles wakes: what came of each claim, only under its own token. Called by the settler, in batches. Locks the alarms and
-- the open rows in order, leaving those that others hold (they come again). Index: alarm_standings_pkey,
-- occurrences_open_pkey, alarm_definitions_pkey (`offset 0` keeps that to one look by key for each row).
-- $1 alarms, $2 nominal instants, $3 tokens, $4 outcomes (fired, retry, failed, released), $5 waits in seconds, $6 errors,
-- $7 answer statuses, $8 answers, $9 classes, $10 the alarm is to be paused. Answers what was done, and which alarms were
-- paused by it.
with asked as (
    select *
    from unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::text[], $5::double precision[], $6::text[], $7::integer[],
                $8::text[], $9::text[], $10::boolean[])
        as a (alarm_id, scheduled_for, token, outcome, wait, error, answer_status, answer, class, disable)
), mine as materialized (
    select o.alarm_id, o.scheduled_for, o.origin, o.recoveries, o.due_at, o.note, a.outcome, a.wait, a.answer_status, a.answer,
           a.class, a.error, a.disable, coalesce(a.error, o.last_error) as last_error,
           o.attempts + (a.outcome in ('retry', 'failed') and a.class <> 'forbidden')::integer as attempts,
           case when a.outcome in ('fired', 'failed') then a.outcome when s.status = 'cancelled' then 'cancelled' end as ended,
           s.status, s.failed_in_a_row, s.last_fired_at, s.next_fire_at, d.kind, d.overlap, d.pause_after
    from asked a
    join stationmaster_internal.alarm_standings s on s.alarm_id = a.alarm_id
    join stationmaster_internal.occurrences_open o
      on o.alarm_id = a.alarm_id and o.scheduled_for = a.scheduled_for and o.token = a.token
    cross join lateral (select kind, overlap, pause_after from stationmaster_internal.alarm_definitions where id = a.alarm_id offset 0) d
    order by a.alarm_id, a.scheduled_for
    for update of s skip locked
    for update of o skip locked
), gone as (
    delete from stationmaster_internal.occurrences_open o
    using mine m
    where o.alarm_id = m.alarm_id and o.scheduled_for = m.scheduled_for and m.ended is not null
), ended as (
    insert into stationmaster_internal.occurrences_finished
        (alarm_id, scheduled_for, origin, status, reason, attempts, recoveries, due_at, fired_at, last_error, answer_status,
         answer, note)
    select alarm_id, scheduled_for, origin, ended, case when ended <> 'fired' then class end, attempts, recoveries, due_at,
           case when ended = 'fired' then clock_timestamp() end, last_error, answer_status, answer, note
    from mine
    where ended is not null
    on conflict (alarm_id, scheduled_for) do nothing
), again as (
    update stationmaster_internal.occurrences_open o
    set attempts = m.attempts, last_error = m.last_error, holder = null, token = null, claimed_at = null,
        ready_at = case when m.status = 'paused' and o.origin = 'schedule' then 'infinity'
                        else clock_timestamp() + make_interval(secs => m.wait) end
    from mine m
    where o.alarm_id = m.alarm_id and o.scheduled_for = m.scheduled_for and m.ended is null
), tries as (
    insert into stationmaster_internal.occurrence_tries (alarm_id, scheduled_for, attempt, class, answer_status, answer, error)
    select alarm_id, scheduled_for, attempts, class, answer_status, answer, error
    from mine
    where outcome in ('retry', 'failed')
), totals as (
    select alarm_id, min(status) as was, min(kind) as kind, min(overlap) as overlap, min(pause_after) as pause_after,
           min(failed_in_a_row) as failed_before, min(last_fired_at) as last_fired_at, min(next_fire_at) as next_fire_at,
           bool_or(outcome = 'fired') as fired, count(*) filter (where outcome in ('retry', 'failed')) as failures,
           count(*) filter (where outcome = 'failed' and origin = 'schedule') as failed,
           max(error) filter (where outcome <> 'fired') as error, bool_or(disable) as disable,
           bool_or(ended is not null and origin = 'schedule') as settled
    from mine
    group by alarm_id
), judged as materialized (
    select t.alarm_id, t.was, t.fired, t.failures, t.error, t.overlap, t.settled,
           case when t.fired then 0 else t.failed_before + t.failed end as failed_in_a_row,
           case
               when t.was not in ('active', 'paused') then t.was
               -- Once: it is over with its only occurrence. Cron: with the last of its series.
               when t.settled and t.kind = 'once' then case when t.fired then 'fired' else 'failed' end
               when t.settled and t.next_fire_at is null and not exists (
                        select from stationmaster_internal.occurrences_open o
                        where o.alarm_id = t.alarm_id and o.origin = 'schedule'
                          and not exists (select from mine m where m.ended is not null and m.alarm_id = o.alarm_id
                                                                and m.scheduled_for = o.scheduled_for))
                   then case when t.fired or t.last_fired_at is not null then 'fired' else 'failed' end
               when t.disable or (not t.fired and t.failed > 0 and t.failed_before + t.failed >= t.pause_after) then 'paused'
               else t.was
           end as status
    from totals t
), freed as (
    -- Under the policies queue and skip the next one may come now: an occurrence that waits, or else the series.
    update stationmaster_internal.occurrences_open o
    set ready_at = clock_timestamp()
    from judged j
    where o.alarm_id = j.alarm_id and j.settled and j.overlap <> 'allow' and j.status = 'active' and o.origin = 'schedule'
      and o.scheduled_for = (select min(w.scheduled_for) from stationmaster_internal.occurrences_open w
                             where w.alarm_id = j.alarm_id and w.origin = 'schedule' and w.ready_at = 'infinity'
                               and w.holder is null)
    returning o.alarm_id
), stood as (
    update stationmaster_internal.alarm_standings s
    set status = j.status,
        failure_count = case when j.fired then 0 else s.failure_count + j.failures end,
        failed_in_a_row = j.failed_in_a_row,
        last_error = case when j.fired and j.failures = 0 then null else coalesce(j.error, s.last_error) end,
        last_fired_at = case when j.fired then clock_timestamp() else s.last_fired_at end,
        held = s.held and (not j.settled or exists (select from freed f where f.alarm_id = s.alarm_id)),
        free_at = case when s.held and j.settled then clock_timestamp() else s.free_at end,
        next_due_at = case when j.status = 'active' then s.next_due_at end,
        ended_at = case when j.status in ('fired', 'failed', 'cancelled') then coalesce(s.ended_at, clock_timestamp()) end
    from judged j
    where s.alarm_id = j.alarm_id
), paused as (
    insert into stationmaster_internal.alarm_events (alarm_id, event, actor, detail)
    select alarm_id, 'paused', 'stationmaster', error
    from judged
    where status = 'paused' and was = 'active'
    returning alarm_id
)
select alarm_id, scheduled_for, false as paused
from mine
union all
select alarm_id, null, true
from paused
