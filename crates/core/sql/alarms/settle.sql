-- Settles wakes: what came of each claim, only under its own token. Called by the settler, in batches. Locks the alarms and
-- the open rows in order, leaving those that others hold (they come again). Index: alarm_standings_pkey,
-- occurrences_open_pkey, alarm_definitions_pkey (`offset 0` keeps that to one look by key for each row).
-- What is read of other rows is as old as the statement: an alarm that was changed since it began is left too.
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
           s.status, s.failed_in_a_row, s.last_fired_at, s.next_fire_at, d.kind, d.kind = 'cron' and d.overlap <> 'allow' as in_turns,
           d.pause_after
    from asked a
    join stationmaster_internal.alarm_standings s on s.alarm_id = a.alarm_id
    join stationmaster_internal.occurrences_open o
      on o.alarm_id = a.alarm_id and o.scheduled_for = a.scheduled_for and o.token = a.token
    cross join lateral (select kind, overlap, pause_after from stationmaster_internal.alarm_definitions where id = a.alarm_id offset 0) d
    cross join lateral (select t.xmin from stationmaster_internal.alarm_standings t where t.alarm_id = a.alarm_id offset 0) seen
    where s.xmin = seen.xmin
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
), tries as (
    insert into stationmaster_internal.occurrence_tries (alarm_id, scheduled_for, attempt, class, answer_status, answer, error)
    select alarm_id, scheduled_for, attempts, class, answer_status, answer, error
    from mine
    where outcome in ('retry', 'failed')
), totals as (
    select alarm_id, min(status) as was, min(kind) as kind, bool_or(in_turns) as in_turns, min(pause_after) as pause_after,
           min(failed_in_a_row) as failed_before, min(last_fired_at) as last_fired_at, min(next_fire_at) as next_fire_at,
           bool_or(outcome = 'fired') as fired, count(*) filter (where outcome in ('retry', 'failed')) as failures,
           count(*) filter (where outcome = 'failed' and origin = 'schedule') as failed,
           max(error) filter (where outcome <> 'fired') as error, bool_or(disable) as disable,
           bool_or(ended is not null and origin = 'schedule') as settled
    from mine
    group by alarm_id
), judged as materialized (
    select t.alarm_id, t.was, t.fired, t.failures, t.error, t.in_turns, t.settled,
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
), left_open as materialized (
    -- Where occurrences take turns: what stays open of the schedule once this is written, and what of it is in somebody's hands.
    select j.alarm_id, o.scheduled_for, o.holder is not null and m.alarm_id is null as in_hands
    from judged j
    cross join lateral (select p.scheduled_for, p.holder from stationmaster_internal.occurrences_open p
                        where p.alarm_id = j.alarm_id and p.origin = 'schedule' offset 0) o
    left join mine m on m.alarm_id = j.alarm_id and m.scheduled_for = o.scheduled_for
    where j.in_turns and (m.alarm_id is null or m.ended is null)
), turns as materialized (
    -- It is nobody's turn while one is in somebody's hands; otherwise the earliest's.
    select alarm_id, case when not bool_or(in_hands) then min(scheduled_for) end as scheduled_for
    from left_open
    group by alarm_id
), again as (
    update stationmaster_internal.occurrences_open o
    set attempts = m.attempts, last_error = m.last_error, holder = null, token = null, claimed_at = null,
        ready_at = case when o.origin = 'schedule'
                             and (j.status = 'paused' or (j.in_turns and o.scheduled_for is distinct from t.scheduled_for))
                        then 'infinity' else clock_timestamp() + make_interval(secs => m.wait) end
    from mine m
    join judged j on j.alarm_id = m.alarm_id
    left join turns t on t.alarm_id = m.alarm_id
    where o.alarm_id = m.alarm_id and o.scheduled_for = m.scheduled_for and m.ended is null
), freed as (
    update stationmaster_internal.occurrences_open o
    set ready_at = clock_timestamp()
    from turns t
    join judged j on j.alarm_id = t.alarm_id
    where o.alarm_id = t.alarm_id and o.scheduled_for = t.scheduled_for and j.status = 'active' and o.holder is null
      and o.ready_at = 'infinity'
), parked as (
    -- What an alarm that is paused by this has besides.
    update stationmaster_internal.occurrences_open o
    set ready_at = 'infinity'
    where o.alarm_id = any (array(select alarm_id from judged where status = 'paused' and was = 'active'))
      and o.origin = 'schedule' and o.holder is null
), stood as (
    update stationmaster_internal.alarm_standings s
    set status = j.status,
        failure_count = case when j.fired then 0 else s.failure_count + j.failures end,
        failed_in_a_row = j.failed_in_a_row,
        last_error = case when j.fired and j.failures = 0 then null else coalesce(j.error, s.last_error) end,
        last_fired_at = case when j.fired then clock_timestamp() else s.last_fired_at end,
        held = j.in_turns and j.status in ('active', 'paused') and exists (select from turns t where t.alarm_id = s.alarm_id),
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
