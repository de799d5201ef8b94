-- The claim: occurrences that are due are made and leased, and so are open ones whose time has come (tried again, given
-- back, or held by somebody whose lease has run out); each under a fresh token. An instant that is on record already, by a backfill, is
-- not made again, and the turn goes to the next. What is in somebody's hands while its alarm was paused or cancelled is left to recovery. Second statement of a claim: the first has
-- locked the alarms. Locks open rows, skipping what others hold. Index: occurrences_open_ready, alarm_definitions_pkey,
-- occurrences_finished_pkey; `offset 0` keeps a join to one look by key for each row.
-- The series: $1 alarms, $2 next nominal instants, $3 the same with jitter, $4 after which instants, $5 held if something is made, $6 notes,
-- $7 statuses, $17 errors. The occurrences: $8 alarms, $9 nominal instants, $10 due, $11 whether it waits for an
-- earlier one, $12 notes. $13 server, $14 lease in seconds, $15 the instant (seconds since 1970) to look from, $16 how
-- many open ones.
with fresh as materialized (
    select n.alarm_id, n.scheduled_for, n.due_at, n.waits, n.note,
           row_number() over (partition by n.alarm_id order by n.scheduled_for) = 1 as first
    from unnest($8::uuid[], $9::timestamptz[], $10::timestamptz[], $11::boolean[], $12::text[])
        as n (alarm_id, scheduled_for, due_at, waits, note)
    where not exists (select from stationmaster_internal.occurrences_finished f
                      where f.alarm_id = n.alarm_id and f.scheduled_for = n.scheduled_for offset 0)
      and not exists (select from stationmaster_internal.occurrences_open o
                      where o.alarm_id = n.alarm_id and o.scheduled_for = n.scheduled_for offset 0)
), made as (
    insert into stationmaster_internal.occurrences_open
        (alarm_id, scheduled_for, due_at, ready_at, holder, token, claimed_at, note)
    select n.alarm_id, n.scheduled_for, n.due_at,
           case when n.first then clock_timestamp() + make_interval(secs => $14) when n.waits then 'infinity'
                else clock_timestamp() end,
           case when n.first then $13::uuid end, case when n.first then nextval('stationmaster_internal.claim_token') end,
           case when n.first then clock_timestamp() end, n.note
    from fresh n
    on conflict do nothing
    returning alarm_id, scheduled_for, origin, due_at, attempts, recoveries, token
), moved as (
    update stationmaster_internal.alarm_standings s
    set next_fire_at = m.next_fire_at, next_due_at = m.next_due_at, follows_at = m.follows_at, free_at = null, note = m.note,
        held = m.held and m.alarm_id in (select alarm_id from fresh),
        status = case when m.over then case when s.last_fired_at is null then 'failed' else 'fired' end else m.status end,
        last_error = coalesce(m.error, s.last_error),
        ended_at = case when m.over or m.status <> 'active' then clock_timestamp() end
    from (select u.*, u.status = 'active' and u.next_fire_at is null and u.alarm_id not in (select alarm_id from fresh)
                      and not exists (select from stationmaster_internal.occurrences_open o
                                      where o.alarm_id = u.alarm_id and o.origin = 'schedule') as over
          from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[], $5::boolean[], $6::text[], $7::text[],
                      $17::text[])
              as u (alarm_id, next_fire_at, next_due_at, follows_at, held, note, status, error)) m
    where s.alarm_id = m.alarm_id and s.alarm_id = any ($1)
), ready as materialized (
    select o.alarm_id, o.scheduled_for,
           case when o.holder is not null
                then exists (select from stationmaster_internal.alarm_standings s
                             where s.alarm_id = o.alarm_id
                               and (s.status = 'cancelled' or (s.status = 'paused' and o.origin = 'schedule')))
                else false end as stopped
    from stationmaster_internal.occurrences_open o
    where o.ready_at >= to_timestamp($15) and o.ready_at <= clock_timestamp()
    order by o.ready_at
    limit $16
    for update skip locked
), taken as (
    update stationmaster_internal.occurrences_open o
    set holder = $13, token = nextval('stationmaster_internal.claim_token'), claimed_at = clock_timestamp(),
        ready_at = clock_timestamp() + make_interval(secs => $14), recoveries = o.recoveries + (o.holder is not null)::integer
    from ready r
    where o.alarm_id = r.alarm_id and o.scheduled_for = r.scheduled_for and not r.stopped
    returning o.alarm_id, o.scheduled_for, o.origin, o.due_at, o.attempts, o.recoveries, o.token
), left_alone as (
    update stationmaster_internal.occurrences_open o
    set ready_at = 'infinity'
    from ready r
    where o.alarm_id = r.alarm_id and o.scheduled_for = r.scheduled_for and r.stopped
), claimed as materialized (
    select * from made where token is not null
    union all
    select * from taken
)
select c.alarm_id, c.scheduled_for, c.origin, c.attempts, c.recoveries, c.token,
       extract(epoch from clock_timestamp() - c.due_at)::double precision as late, d.workspace_id, d.target_url, d.user_id,
       d.conversation_id, d.message, d.payload::text as payload, d.max_failures, d.traceparent
from claimed c
cross join lateral (select * from stationmaster_internal.alarm_definitions where id = c.alarm_id offset 0) d
order by c.scheduled_for, c.alarm_id
