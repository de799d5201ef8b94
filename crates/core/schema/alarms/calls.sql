-- What applications call inside their own transactions: set and cancel.

-- Sets an alarm inside the caller's transaction and answers its id. Of fire_at, delay, civil_at (with timezone) and cron_expr
-- (with timezone, UTC when left out) exactly one is given. An expression that is none is refused. When it fires, and whether ever, a server
-- works out as soon as the transaction is committed: then next_fire_at is there, or the alarm is failed and last_error says why. The same
-- idempotency key with the same request gives the first alarm again; with another request it is an error.
create or replace function stationmaster.set_alarm(
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
    id uuid default null,
    name text default null
) returns uuid language plpgsql as $$
#variable_conflict use_column
declare
    alarm uuid;
    asked text;
    before text;
    called text := stationmaster_internal.given_name(set_alarm.name);
    other uuid;
    fault text[];
begin
    if num_nonnulls(set_alarm.fire_at, set_alarm.delay, set_alarm.civil_at, set_alarm.cron_expr) <> 1 then
        raise exception 'give exactly one of fire_at, delay, civil_at and cron_expr' using errcode = 'check_violation';
    end if;
    if not stationmaster_internal.is_trace(set_alarm.traceparent) then
        perform stationmaster_internal.refuse_trace(set_alarm.traceparent);
    end if;
    fault := stationmaster_internal.fault_of_expression(set_alarm.cron_expr);
    if fault is not null then
        raise exception '%', fault[1] using errcode = 'check_violation', hint = fault[2];
    end if;
    asked := md5(jsonb_build_array(
        set_alarm.label, extract(epoch from set_alarm.fire_at), extract(epoch from set_alarm.delay), set_alarm.civil_at,
        set_alarm.cron_expr, set_alarm.timezone, set_alarm.target_url, set_alarm.message, set_alarm.payload::text,
        set_alarm.user_id, set_alarm.conversation_id, set_alarm.max_failures, set_alarm.misfire, set_alarm.catch_up,
        extract(epoch from set_alarm.misfire_window), set_alarm.overlap, set_alarm.dst, extract(epoch from set_alarm.jitter),
        extract(epoch from set_alarm.start_at), extract(epoch from set_alarm.end_at), set_alarm.pause_after, called)::text);
    if called is not null then
        -- A name is a living alarm's: one that has ended gives it up to the next.
        update stationmaster_internal.alarm_definitions d set name = null
        where d.workspace_id = set_alarm.workspace_id and d.name = called
          and (set_alarm.idempotency_key is null or d.idempotency_key is distinct from set_alarm.idempotency_key)
          and exists (select from stationmaster_internal.alarm_standings s
                      where s.alarm_id = d.id and s.status not in ('active', 'paused'));
        select d.id into other from stationmaster_internal.alarm_definitions d
        where d.workspace_id = set_alarm.workspace_id and d.name = called
          and (set_alarm.idempotency_key is null or d.idempotency_key is distinct from set_alarm.idempotency_key);
        if found then
            raise exception 'there is an alarm called "%" already in this workspace: %', called, other
                using errcode = 'unique_violation', constraint = 'alarm_definitions_by_name';
        end if;
    end if;
    insert into stationmaster_internal.alarm_definitions
        (id, workspace_id, label, kind, fire_at, civil_at, cron_expr, timezone, target_url, message, payload, user_id,
         conversation_id, idempotency_key, max_failures, misfire, catch_up, misfire_window, overlap, dst, jitter, start_at,
         end_at, pause_after, traceparent, set_by, request, name)
    values (coalesce(set_alarm.id, stationmaster.new_id()), set_alarm.workspace_id, coalesce(set_alarm.label, ''),
            case when set_alarm.cron_expr is null then 'once' else 'cron' end,
            coalesce(set_alarm.fire_at, now() + set_alarm.delay), set_alarm.civil_at, set_alarm.cron_expr,
            coalesce(set_alarm.timezone, case when set_alarm.cron_expr is not null then 'UTC' end), set_alarm.target_url,
            set_alarm.message, set_alarm.payload, set_alarm.user_id, set_alarm.conversation_id, set_alarm.idempotency_key,
            set_alarm.max_failures, coalesce(set_alarm.misfire, 'coalesce'), coalesce(set_alarm.catch_up, 10),
            set_alarm.misfire_window, coalesce(set_alarm.overlap, 'allow'), coalesce(set_alarm.dst, 'vixie'),
            coalesce(set_alarm.jitter, '0'), set_alarm.start_at, set_alarm.end_at, set_alarm.pause_after,
            set_alarm.traceparent, coalesce(set_alarm.set_by, session_user), asked, called)
    on conflict (workspace_id, idempotency_key) where idempotency_key is not null do nothing
    returning id into alarm;
    if alarm is not null then
        return alarm;
    end if;
    select d.id, d.request into alarm, before from stationmaster_internal.alarm_definitions d
    where d.workspace_id = set_alarm.workspace_id and d.idempotency_key = set_alarm.idempotency_key;
    if before is distinct from asked then
        raise exception 'the idempotency key "%" was used in this workspace with another request',
            set_alarm.idempotency_key using errcode = 'unique_violation';
    end if;
    return alarm;
end
$$;

-- The same by the name of the workspace; its id is taken too.
create or replace function stationmaster.set_alarm(
    workspace text,
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
    id uuid default null,
    name text default null
) returns uuid language sql as $$
    select stationmaster.set_alarm(
        stationmaster.workspace_id(workspace), label, fire_at, delay, civil_at, cron_expr, timezone, target_url, message, payload, user_id,
        conversation_id, idempotency_key, max_failures, misfire, catch_up, misfire_window, overlap,
        dst, jitter, start_at, end_at, pause_after, traceparent, set_by, id, name)
$$;

-- Cancels an alarm inside the caller's transaction. Answers its status: cancelled, or the one in which it had ended before.
create or replace function stationmaster.cancel_alarm(id uuid, actor text default null) returns text language plpgsql as $$
declare
    was text;
begin
    select s.status into was from stationmaster_internal.alarm_standings s where s.alarm_id = cancel_alarm.id for update;
    if not found then
        raise exception 'there is no alarm %', cancel_alarm.id using errcode = 'no_data_found';
    end if;
    if was not in ('active', 'paused') then
        return was;
    end if;
    perform stationmaster_internal.end_alarm(cancel_alarm.id, 'cancelled', null);
    insert into stationmaster_internal.alarm_events (alarm_id, event, actor)
    values (cancel_alarm.id, 'cancelled', coalesce(cancel_alarm.actor, session_user));
    return 'cancelled';
end
$$;

-- The same by the names of the workspace and of the alarm; ids are taken too.
create or replace function stationmaster.cancel_alarm(workspace text, alarm text, actor text default null) returns text
language plpgsql as $$
declare
    place uuid := stationmaster.workspace_id(workspace);
    wanted text := stationmaster.slug(alarm);
    found_id uuid;
begin
    if stationmaster_internal.is_id(wanted) then
        return stationmaster.cancel_alarm(wanted::uuid, actor);
    end if;
    select d.id into found_id from stationmaster_internal.alarm_definitions d where d.name = wanted and d.workspace_id = place;
    if found_id is null then
        raise exception 'workspace "%" has no alarm called "%"', workspace, alarm using errcode = 'no_data_found';
    end if;
    return stationmaster.cancel_alarm(found_id, actor);
end
$$;
