-- Settles wakes: what came of each claim, only under its own token. Called by the settler, in batches. Locks the alarms in id
-- order, leaving those that others hold (they come again), then the open rows. Index: alarm_standings_pkey,
-- occurrences_open_pkey. $1 alarms, $2 nominal instants, $3 tokens, $4 outcomes (fired, retry, failed, released), $5 waits in
-- seconds, $6 errors, $7 answer statuses, $8 answers, $9 classes, $10 the alarm is to be paused. Answers each as done, busy
-- or stale, and the status of its alarm.
with asked as (
    select *
    from unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::text[], $5::double precision[], $6::text[], $7::integer[],
                $8::text[], $9::text[], $10::boolean[])
        as a (alarm_id, scheduled_for, token, outcome, wait, error, answer_status, answer, class, disable)
), standing as materialized (
    select s.alarm_id, s.status, s.failed_in_a_row, s.last_fired_at, s.next_fire_at
    from stationmaster.alarm_standings s
    where s.alarm_id = any ($1)
    order by s.alarm_id
    for update skip locked
), mine as materialized (
    select o.alarm_id, o.scheduled_for, o.origin, o.attempts + (asked.outcome in ('retry', 'failed') and asked.class <> 'forbidden')::integer as attempts,
           o.recoveries, o.due_at, o.note, asked.outcome, asked.wait, asked.answer_status, asked.answer, asked.class,
           coalesce(asked.error, o.last_error) as last_error, asked.error, asked.disable,
           case when asked.outcome in ('fired', 'failed') then asked.outcome
                when s.status = 'cancelled' then 'cancelled' end as ended
    from asked
    join standing s on s.alarm_id = asked.alarm_id
    join stationmaster.occurrences_open o
      on o.alarm_id = asked.alarm_id and o.scheduled_for = asked.scheduled_for and o.token = asked.token
    where o.alarm_id = any ($1)
    order by o.alarm_id, o.scheduled_for
    for update of o
), gone as (
    delete from stationmaster.occurrences_open o
    using mine m
    where o.alarm_id = m.alarm_id and o.scheduled_for = m.scheduled_for and m.ended is not null and o.alarm_id = any ($1)
), ended as (
    insert into stationmaster.occurrences_finished
        (alarm_id, scheduled_for, origin, status, reason, attempts, recoveries, due_at, fired_at, last_error, answer_status,
         answer, note)
    select alarm_id, scheduled_for, origin, ended, case when ended <> 'fired' then class end, attempts, recoveries, due_at,
           case when ended = 'fired' then clock_timestamp() end, last_error, answer_status, answer, note
    from mine
    where ended is not null
    on conflict (alarm_id, scheduled_for) do update
        set status = excluded.status, reason = excluded.reason, attempts = excluded.attempts, fired_at = excluded.fired_at,
            finished_at = excluded.finished_at, last_error = excluded.last_error, origin = excluded.origin,
            answer_status = excluded.answer_status, answer = excluded.answer
        where occurrences_finished.status <> 'fired'
), again as (
    update stationmaster.occurrences_open o
    set attempts = m.attempts, last_error = m.last_error, holder = null, token = null, claimed_at = null,
        ready_at = case when s.status = 'paused' and o.origin = 'schedule' then 'infinity'
                        else clock_timestamp() + make_interval(secs => m.wait) end
    from mine m
    join standing s on s.alarm_id = m.alarm_id
    where o.alarm_id = m.alarm_id and o.scheduled_for = m.scheduled_for and m.ended is null and o.alarm_id = any ($1)
), tries as (
    insert into stationmaster.occurrence_tries (alarm_id, scheduled_for, attempt, class, answer_status, answer, error)
    select alarm_id, scheduled_for, attempts, class, answer_status, answer, error
    from mine
    where outcome in ('retry', 'failed')
), totals as (
    select m.alarm_id, bool_or(m.outcome = 'fired') as fired, count(*) filter (where m.outcome in ('retry', 'failed')) as failures,
           count(*) filter (where m.outcome = 'failed' and m.origin = 'schedule') as failed,
           max(m.error) filter (where m.outcome <> 'fired') as error, bool_or(m.disable) as disable,
           bool_or(m.ended is not null and m.origin = 'schedule') as settled
    from mine m
    group by m.alarm_id
), judged as (
    select t.alarm_id, t.fired, t.failures, t.error, d.overlap,
           case when t.fired then 0 else s.failed_in_a_row + t.failed end as failed_in_a_row,
           t.settled,
           case
               when s.status not in ('active', 'paused') then s.status
               -- Once: it is over with its only occurrence. Cron: with the last of its series.
               when t.settled and d.kind = 'once' then case when t.fired then 'fired' else 'failed' end
               when t.settled and s.next_fire_at is null and not exists (
                        select from stationmaster.occurrences_open o
                        where o.alarm_id = t.alarm_id and o.origin = 'schedule'
                          and not exists (select from mine m where m.ended is not null and m.alarm_id = o.alarm_id
                                                                and m.scheduled_for = o.scheduled_for))
                   then case when t.fired or s.last_fired_at is not null then 'fired' else 'failed' end
               when t.disable or (not t.fired and s.failed_in_a_row + t.failed >= d.pause_after and t.failed > 0) then 'paused'
               else s.status
           end as status,
           s.status as was
    from totals t
    join standing s on s.alarm_id = t.alarm_id
    join stationmaster.alarm_definitions d on d.id = t.alarm_id
    where d.id = any ($1)
), freed as (
    -- Under the policies queue and skip the next one may come now: an occurrence that waits, or else the series.
    update stationmaster.occurrences_open o
    set ready_at = clock_timestamp()
    from judged j
    where o.alarm_id = j.alarm_id and j.settled and j.overlap <> 'allow' and j.status = 'active' and o.origin = 'schedule'
      and o.scheduled_for = (select min(w.scheduled_for) from stationmaster.occurrences_open w
                             where w.alarm_id = j.alarm_id and w.origin = 'schedule' and w.ready_at = 'infinity'
                               and w.holder is null)
    returning o.alarm_id
), stood as (
    update stationmaster.alarm_standings s
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
    where s.alarm_id = j.alarm_id and s.alarm_id = any ($1)
), told as (
    insert into stationmaster.alarm_events (alarm_id, event, actor, detail)
    select alarm_id, 'paused', 'stationmaster', error
    from judged
    where status = 'paused' and was = 'active'
)
select asked.alarm_id, asked.scheduled_for,
       case when m.alarm_id is not null then 'done'
            when s.alarm_id is null and exists (select from stationmaster.alarm_standings x where x.alarm_id = asked.alarm_id)
                then 'busy'
            else 'stale' end as written,
       j.status, j.was
from asked
left join standing s on s.alarm_id = asked.alarm_id
left join mine m on m.alarm_id = asked.alarm_id and m.scheduled_for = asked.scheduled_for
left join judged j on j.alarm_id = asked.alarm_id
