-- Alarms: schedules, and the occurrences that come of them.
--
-- One alarm lives in two tables, one occurrence in one of two, each shaped for what is done to it there:
--
--   alarm_definitions     what was asked for; changed only by people
--   alarm_standings       narrow; one row per alarm: how it stands, and the next nominal instant of its series
--   occurrences_open      narrow; one row from the moment an occurrence is due until it is settled
--   occurrences_finished  append-only; how it ended
--   occurrence_ranges     the same for long rows of missed ones
--
-- The row of alarm_standings is what everybody who moves a series locks first: a claim (skipping what others hold), a
-- settlement (the same), and people. The public relations alarms and alarm_occurrences are views over these tables.

create table stationmaster.alarm_definitions (
    id              uuid primary key default stationmaster.new_id(),
    workspace_id    uuid not null,
    label           text not null default '',
    kind            text not null check (kind in ('once', 'cron')),
    fire_at         timestamptz,
    civil_at        timestamp,
    cron_expr       text,
    timezone        text,
    dst             text not null default 'vixie',
    misfire         text not null default 'coalesce',
    catch_up        integer not null default 10,
    misfire_window  interval,
    overlap         text not null default 'allow',
    jitter          interval not null default '0',
    start_at        timestamptz,
    end_at          timestamptz,
    anchor_at       timestamptz not null default now(),
    target_url      text,
    user_id         text,
    conversation_id text,
    message         text,
    payload         json,
    max_failures    integer,
    pause_after     integer,
    idempotency_key text,
    request         text not null default '',
    traceparent     text,
    set_by          text not null default session_user,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    constraint the_label_has_at_most_200_characters check (length(label) <= 200),
    constraint a_cron_alarm_has_an_expression_and_a_time_zone
        check (kind <> 'cron' or (cron_expr is not null and timezone is not null and fire_at is null and civil_at is null)),
    constraint an_alarm_for_once_has_an_instant_or_a_civil_time_with_its_zone
        check (kind <> 'once' or (cron_expr is null and (civil_at is not null or fire_at is not null)
                                  and (civil_at is null or timezone is not null))),
    constraint the_expression_has_at_most_200_characters check (length(cron_expr) <= 200),
    constraint the_time_zone_has_at_most_64_characters check (length(timezone) <= 64),
    constraint dst_is_vixie_skip_or_both check (dst in ('vixie', 'skip', 'both')),
    constraint misfire_is_coalesce_catch_up_or_skip check (misfire in ('coalesce', 'catch_up', 'skip')),
    constraint catch_up_is_a_number_from_1_to_1000 check (catch_up between 1 and 1000),
    constraint the_misfire_window_is_positive check (misfire_window > interval '0'),
    constraint overlap_is_allow_queue_or_skip check (overlap in ('allow', 'queue', 'skip')),
    constraint jitter_is_between_nothing_and_a_day check (jitter between interval '0' and interval '1 day'),
    constraint the_end_comes_after_the_start check (end_at > start_at),
    constraint the_target_is_an_http_url_without_credentials
        check (target_url ~* '^https?://[^/?#@[:space:]]+([/?#]|$)' and length(target_url) <= 2000),
    constraint user_id_has_at_most_256_characters check (length(user_id) <= 256),
    constraint conversation_id_has_at_most_256_characters check (length(conversation_id) <= 256),
    constraint the_message_is_at_most_64_kib check (octet_length(message) <= 65536),
    constraint the_payload_is_at_most_256_kib check (octet_length(payload::text) <= 262144),
    constraint max_failures_is_a_number_from_1_to_100 check (max_failures between 1 and 100),
    constraint pause_after_is_a_number_from_1_to_1000 check (pause_after between 1 and 1000),
    constraint the_idempotency_key_has_1_to_256_characters check (length(idempotency_key) between 1 and 256),
    constraint the_trace_context_has_at_most_256_characters check (length(traceparent) <= 256)
);
create unique index alarm_definitions_idempotency on stationmaster.alarm_definitions (workspace_id, idempotency_key)
    where idempotency_key is not null;
-- Without the id: a plan made before the table was analysed must not mistake this for a way to one alarm.
create index alarm_definitions_by_workspace on stationmaster.alarm_definitions (workspace_id);

comment on column stationmaster.alarm_definitions.fire_at is 'of kind once: the instant; with civil_at, what it was resolved to';
comment on column stationmaster.alarm_definitions.anchor_at is 'from where @every counts';
comment on column stationmaster.alarm_definitions.target_url is 'null: the router of the server that fires';
comment on column stationmaster.alarm_definitions.payload is 'json and not jsonb: what was given is sent, character by character';
comment on column stationmaster.alarm_definitions.request is 'a digest of what was asked for, to tell a repeat from another request';

create table stationmaster.alarm_standings (
    alarm_id        uuid primary key,
    status          text not null default 'active' check (status in ('active', 'paused', 'fired', 'cancelled', 'failed')),
    next_fire_at    timestamptz,
    next_due_at     timestamptz,
    follows_at      timestamptz,
    held            boolean not null default false,
    free_at         timestamptz,
    note            text,
    failure_count   integer not null default 0,
    failed_in_a_row integer not null default 0,
    last_error      text,
    last_fired_at   timestamptz,
    ended_at        timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index alarm_standings_due on stationmaster.alarm_standings (next_due_at) where next_due_at is not null and not held;
create index alarm_standings_failing on stationmaster.alarm_standings (alarm_id) where failed_in_a_row > 0;
create index alarm_standings_ended on stationmaster.alarm_standings (ended_at) where ended_at is not null;

comment on column stationmaster.alarm_standings.next_fire_at is 'the nominal instant of the next occurrence that is not yet made';
comment on column stationmaster.alarm_standings.next_due_at is 'the same with its jitter; null: there is nothing to claim';
comment on column stationmaster.alarm_standings.follows_at is 'the instant after which the next one was looked for';
comment on column stationmaster.alarm_standings.held is 'by the overlap policy: an earlier occurrence is not settled yet';
comment on column stationmaster.alarm_standings.free_at is 'when the hold ended; what was nominal before is skipped by the policy skip';
comment on column stationmaster.alarm_standings.note is 'what the change of the clocks does to the next one';
comment on column stationmaster.alarm_standings.failure_count is 'tries that failed since the last accepted wake';
comment on column stationmaster.alarm_standings.failed_in_a_row is 'occurrences that failed since the last accepted wake';

-- Alarms that a server has to look at: their expression or civil time becomes an instant there, not here.
create table stationmaster.alarm_unplanned (
    alarm_id uuid primary key,
    reason   text not null
);

-- ready_at is the one thing that a claim looks at: when the occurrence is due, when it is tried again, or when the lease
-- of whoever holds it ends. 'infinity': it waits for an earlier one, or its alarm is paused.
create table stationmaster.occurrences_open (
    alarm_id      uuid not null,
    scheduled_for timestamptz not null,
    origin        text not null default 'schedule' check (origin in ('schedule', 'manual', 'backfill')),
    due_at        timestamptz not null,
    ready_at      timestamptz not null,
    attempts      integer not null default 0,
    recoveries    integer not null default 0,
    holder        uuid,
    token         bigint,
    claimed_at    timestamptz,
    last_error    text,
    note          text,
    primary key (alarm_id, scheduled_for)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 500);
create index occurrences_open_ready on stationmaster.occurrences_open (ready_at);
create index occurrences_open_held on stationmaster.occurrences_open (holder) where holder is not null;

comment on column stationmaster.occurrences_open.attempts is 'tries that the target did not confirm; our own crashes and waits are not among them';

create table stationmaster.occurrences_finished (
    alarm_id      uuid not null,
    scheduled_for timestamptz not null,
    origin        text not null,
    status        text not null check (status in ('fired', 'failed', 'skipped', 'coalesced', 'cancelled')),
    reason        text,
    attempts      integer not null default 0,
    recoveries    integer not null default 0,
    due_at        timestamptz not null,
    fired_at      timestamptz,
    finished_at   timestamptz not null default clock_timestamp(),
    last_error    text,
    answer_status integer,
    answer        text,
    note          text,
    primary key (alarm_id, scheduled_for)
);
create index occurrences_finished_at on stationmaster.occurrences_finished using brin (finished_at)
    with (pages_per_range = 16, autosummarize = on);

-- A long row of missed occurrences is one line here, from scheduled_for up to, not with, until.
create table stationmaster.occurrence_ranges (
    id            bigint generated always as identity primary key,
    alarm_id      uuid not null,
    scheduled_for timestamptz not null,
    until         timestamptz not null,
    covers        bigint,
    status        text not null check (status in ('skipped', 'coalesced')),
    reason        text not null,
    finished_at   timestamptz not null default clock_timestamp()
);
create index occurrence_ranges_by_alarm on stationmaster.occurrence_ranges (alarm_id, scheduled_for);

comment on column stationmaster.occurrence_ranges.covers is 'how many; null: very many';

-- Every try that was not confirmed. The one that was, or the last, is on the occurrence itself.
create table stationmaster.occurrence_tries (
    id            bigint generated always as identity primary key,
    alarm_id      uuid not null,
    scheduled_for timestamptz not null,
    attempt       integer not null,
    at            timestamptz not null default clock_timestamp(),
    class         text not null,
    answer_status integer,
    answer        text,
    error         text
);
create index occurrence_tries_by_occurrence on stationmaster.occurrence_tries (alarm_id, scheduled_for, id);
create index occurrence_tries_at on stationmaster.occurrence_tries using brin (at) with (autosummarize = on);

-- What people and servers did to an alarm, beside firing it.
create table stationmaster.alarm_events (
    id       bigint generated always as identity primary key,
    alarm_id uuid not null,
    at       timestamptz not null default clock_timestamp(),
    event    text not null,
    actor    text not null,
    detail   text
);
create index alarm_events_by_alarm on stationmaster.alarm_events (alarm_id, id);

-- Which generation of secret a target has. The secrets themselves are derived by the servers and stored nowhere.
create table stationmaster.wake_keys (
    target         text primary key,
    generation     integer not null default 1,
    rotated_at     timestamptz not null default now(),
    previous_until timestamptz
);

-- Under which release of the time zone data the stored instants were computed.
create table stationmaster.zone_data (
    one     boolean primary key default true check (one),
    version text not null
);

-- Until when some server looks again every few milliseconds anyway, so that nobody needs to ring.
create table stationmaster.alarm_attention (
    one   boolean primary key default true check (one),
    until timestamptz not null default '-infinity'
) with (fillfactor = 20);
insert into stationmaster.alarm_attention default values;

-- Every way in ends here: an instant is due as it stands; an expression, a civil time or a jitter is left to a server.
create function stationmaster.accept_alarms() returns trigger language plpgsql as $$
declare
    missing uuid;
begin
    select a.workspace_id into missing
    from new_alarms a
    where not exists (select from stationmaster.workspaces w where w.id = a.workspace_id)
    limit 1;
    if found then
        raise exception 'there is no workspace %', missing using errcode = 'foreign_key_violation',
            hint = 'Create it first: insert into stationmaster.workspaces, or "stationmaster workspaces create".';
    end if;
    insert into stationmaster.alarm_standings (alarm_id, next_fire_at, next_due_at, follows_at)
    select id, fire_at, case when jitter = interval '0' then fire_at end, created_at
    from new_alarms;
    insert into stationmaster.alarm_unplanned (alarm_id, reason)
    select id, 'set'
    from new_alarms
    where fire_at is null or jitter > interval '0';
    insert into stationmaster.alarm_events (alarm_id, event, actor, detail)
    select id, 'set', set_by, coalesce(cron_expr, civil_at::text)
    from new_alarms;
    return null;
end
$$;
create trigger accept_alarms after insert on stationmaster.alarm_definitions
    referencing new table as new_alarms
    for each statement execute function stationmaster.accept_alarms();

-- Wakes the servers for what comes before their next look, decided at the moment of the commit. A ring that is lost costs
-- a tick, never a fire. While a server is attentive, nobody rings.
create function stationmaster.ring_alarms() returns trigger language plpgsql as $$
begin
    if not exists (select from stationmaster.alarm_attention where until > clock_timestamp()) then
        perform pg_notify('stationmaster', 'alarms');
    end if;
    return null;
end
$$;
create function stationmaster.ring_soon() returns trigger language plpgsql as $$
begin
    if new.next_due_at < clock_timestamp() + interval '10 seconds'
       and not exists (select from stationmaster.alarm_attention where until > clock_timestamp()) then
        perform pg_notify('stationmaster', 'alarms');
    end if;
    return null;
end
$$;
create constraint trigger ring_soon after insert on stationmaster.alarm_standings
    deferrable initially deferred
    for each row when (new.next_due_at < now() + interval '10 minutes') execute function stationmaster.ring_soon();
create constraint trigger ring_alarms after insert on stationmaster.alarm_unplanned
    deferrable initially deferred
    for each row execute function stationmaster.ring_alarms();
create constraint trigger ring_alarms after insert on stationmaster.occurrences_open
    deferrable initially deferred
    for each row when (new.origin <> 'schedule') execute function stationmaster.ring_alarms();

-- Ends an alarm: nothing more of it is claimed. What is being delivered at this moment is settled by its server.
-- Whoever calls this has locked the alarm's row of alarm_standings.
create function stationmaster.end_alarm(alarm uuid, new_status text, why text) returns void language sql as $$
    update stationmaster.alarm_standings
    set status = new_status, next_fire_at = null, next_due_at = null, held = false, free_at = null,
        ended_at = clock_timestamp(), last_error = coalesce(why, last_error)
    where alarm_id = alarm;
    delete from stationmaster.alarm_unplanned where alarm_id = alarm;
    with gone as (
        delete from stationmaster.occurrences_open o
        where o.alarm_id = alarm
          and o.scheduled_for = any (array(select p.scheduled_for from stationmaster.occurrences_open p
                                           where p.alarm_id = alarm and p.holder is null
                                           order by p.scheduled_for for update skip locked))
        returning o.*
    )
    insert into stationmaster.occurrences_finished
        (alarm_id, scheduled_for, origin, status, reason, attempts, recoveries, due_at, last_error, note)
    select alarm_id, scheduled_for, origin, 'cancelled', why, attempts, recoveries, due_at, last_error, note
    from gone
    on conflict do nothing;
$$;

-- Cancels an alarm inside the caller's transaction. Answers its status: cancelled, or the one in which it had ended before.
create function stationmaster.cancel_alarm(id uuid, actor text default null) returns text language plpgsql as $$
declare
    was text;
begin
    select s.status into was from stationmaster.alarm_standings s where s.alarm_id = cancel_alarm.id for update;
    if not found then
        raise exception 'there is no alarm %', cancel_alarm.id using errcode = 'no_data_found';
    end if;
    if was not in ('active', 'paused') then
        return was;
    end if;
    perform stationmaster.end_alarm(cancel_alarm.id, 'cancelled', null);
    insert into stationmaster.alarm_events (alarm_id, event, actor)
    values (cancel_alarm.id, 'cancelled', coalesce(cancel_alarm.actor, session_user));
    return 'cancelled';
end
$$;

create function stationmaster.cancel_alarms_of_workspace() returns trigger language plpgsql as $$
declare
    alarm uuid;
begin
    for alarm in
        select s.alarm_id from stationmaster.alarm_standings s
        join stationmaster.alarm_definitions d on d.id = s.alarm_id
        where d.workspace_id = old.id and s.status in ('active', 'paused')
        order by s.alarm_id for update of s
    loop
        perform stationmaster.end_alarm(alarm, 'cancelled', 'the workspace was deleted');
        insert into stationmaster.alarm_events (alarm_id, event, actor, detail)
        values (alarm, 'cancelled', session_user, 'the workspace was deleted');
    end loop;
    return null;
end
$$;
create trigger cancel_alarms_of_workspace after delete on stationmaster.workspaces
    for each row execute function stationmaster.cancel_alarms_of_workspace();

create view stationmaster.alarms as
select d.id, d.workspace_id, d.label, d.kind, d.cron_expr, d.timezone, d.civil_at, d.fire_at,
       coalesce(s.next_fire_at,
                case when d.kind = 'once' then (select min(o.scheduled_for) from stationmaster.occurrences_open o
                                                where o.alarm_id = d.id and o.origin = 'schedule') end) as next_fire_at,
       s.status, s.failure_count, s.failed_in_a_row, s.last_error, s.last_fired_at,
       d.dst, d.misfire, d.catch_up, d.misfire_window, d.overlap, d.jitter, d.start_at, d.end_at, d.target_url, d.user_id,
       d.conversation_id, d.message, d.payload, d.max_failures, d.pause_after, d.idempotency_key, d.traceparent, d.set_by,
       d.created_at, d.updated_at,
       exists (select from stationmaster.alarm_unplanned u where u.alarm_id = d.id) as unplanned
from stationmaster.alarm_definitions d
join stationmaster.alarm_standings s on s.alarm_id = d.id;

create view stationmaster.alarm_occurrences as
select o.alarm_id, o.scheduled_for,
       case when o.holder is not null then 'claimed' when o.attempts > 0 then 'retrying' else 'pending' end as status,
       o.origin, o.attempts, o.recoveries, o.last_error, null::timestamptz as fired_at, null::text as reason,
       case when o.holder is null and o.ready_at < 'infinity' then o.ready_at end as retry_at,
       o.due_at, null::timestamptz as finished_at, null::integer as answer_status, null::text as answer, o.note,
       1::bigint as covers, null::timestamptz as until
from stationmaster.occurrences_open o
union all
select f.alarm_id, f.scheduled_for, f.status, f.origin, f.attempts, f.recoveries, f.last_error, f.fired_at, f.reason, null,
       f.due_at, f.finished_at, f.answer_status, f.answer, f.note, 1, null
from stationmaster.occurrences_finished f
union all
select r.alarm_id, r.scheduled_for, r.status, 'schedule', 0, 0, null, null, r.reason, null, r.scheduled_for, r.finished_at,
       null, null, null, r.covers, r.until
from stationmaster.occurrence_ranges r;

-- Sets an alarm inside the caller's transaction and answers its id. Of fire_at, delay, civil_at (with timezone) and cron_expr
-- (with timezone, UTC when left out) exactly one is given. An expression or a civil time is read by a server as soon as the
-- transaction is committed: then next_fire_at is there, or the alarm is failed and last_error says why. The same
-- idempotency key with the same request gives the first alarm again; with another request it is an error.
create function stationmaster.set_alarm(
    workspace_id uuid,
    label text default '',
    fire_at timestamptz default null,
    delay interval default null,
    civil_at timestamp default null,
    cron_expr text default null,
    timezone text default null,
    target_url text default null,
    message text default null,
    payload json default null,
    user_id text default null,
    conversation_id text default null,
    idempotency_key text default null,
    max_failures integer default null,
    misfire text default 'coalesce',
    catch_up integer default 10,
    misfire_window interval default null,
    overlap text default 'allow',
    dst text default 'vixie',
    jitter interval default '0',
    start_at timestamptz default null,
    end_at timestamptz default null,
    pause_after integer default null,
    traceparent text default null,
    set_by text default null,
    id uuid default null
) returns uuid language plpgsql as $$
#variable_conflict use_column
declare
    alarm uuid;
    asked text;
    before text;
begin
    if num_nonnulls(set_alarm.fire_at, set_alarm.delay, set_alarm.civil_at, set_alarm.cron_expr) <> 1 then
        raise exception 'give exactly one of fire_at, delay, civil_at and cron_expr' using errcode = 'check_violation';
    end if;
    asked := md5(jsonb_build_array(
        set_alarm.label, extract(epoch from set_alarm.fire_at), extract(epoch from set_alarm.delay), set_alarm.civil_at,
        set_alarm.cron_expr, set_alarm.timezone, set_alarm.target_url, set_alarm.message, set_alarm.payload::text,
        set_alarm.user_id, set_alarm.conversation_id, set_alarm.max_failures, set_alarm.misfire, set_alarm.catch_up,
        extract(epoch from set_alarm.misfire_window), set_alarm.overlap, set_alarm.dst, extract(epoch from set_alarm.jitter),
        extract(epoch from set_alarm.start_at), extract(epoch from set_alarm.end_at), set_alarm.pause_after)::text);
    insert into stationmaster.alarm_definitions
        (id, workspace_id, label, kind, fire_at, civil_at, cron_expr, timezone, target_url, message, payload, user_id,
         conversation_id, idempotency_key, max_failures, misfire, catch_up, misfire_window, overlap, dst, jitter, start_at,
         end_at, pause_after, traceparent, set_by, request)
    values (coalesce(set_alarm.id, stationmaster.new_id()), set_alarm.workspace_id, coalesce(set_alarm.label, ''),
            case when set_alarm.cron_expr is null then 'once' else 'cron' end,
            coalesce(set_alarm.fire_at, now() + set_alarm.delay), set_alarm.civil_at, set_alarm.cron_expr,
            coalesce(set_alarm.timezone, case when set_alarm.cron_expr is not null then 'UTC' end), set_alarm.target_url,
            set_alarm.message, set_alarm.payload, set_alarm.user_id, set_alarm.conversation_id, set_alarm.idempotency_key,
            set_alarm.max_failures, coalesce(set_alarm.misfire, 'coalesce'), coalesce(set_alarm.catch_up, 10),
            set_alarm.misfire_window, coalesce(set_alarm.overlap, 'allow'), coalesce(set_alarm.dst, 'vixie'),
            coalesce(set_alarm.jitter, '0'), set_alarm.start_at, set_alarm.end_at, set_alarm.pause_after,
            set_alarm.traceparent, coalesce(set_alarm.set_by, session_user), asked)
    on conflict (workspace_id, idempotency_key) where idempotency_key is not null do nothing
    returning id into alarm;
    if alarm is not null then
        return alarm;
    end if;
    select d.id, d.request into alarm, before from stationmaster.alarm_definitions d
    where d.workspace_id = set_alarm.workspace_id and d.idempotency_key = set_alarm.idempotency_key;
    if before is distinct from asked then
        raise exception 'the idempotency key "%" was used in this workspace with another request',
            set_alarm.idempotency_key using errcode = 'unique_violation';
    end if;
    return alarm;
end
$$;
