-- What happens by itself when something is enqueued, or when a workspace, a plan or a definition changes.

-- Keeps workspace_capacity beside workspaces and plans.
create or replace function stationmaster_internal.follow_workspace() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        update stationmaster_internal.workspace_capacity set gone = true where workspace_id = old.id;
        return null;
    end if;
    insert into stationmaster_internal.workspace_capacity as c (workspace_id, max_concurrent, weight, paused, virtual_time)
    select new.id, coalesce(new.max_concurrent, p.max_concurrent), p.weight, new.paused, a.virtual_time
    from stationmaster.plans p, stationmaster_internal.attention a
    where p.name = new.plan and a.lane = 'executions'
    on conflict (workspace_id) do update
        set max_concurrent = excluded.max_concurrent, weight = excluded.weight, paused = excluded.paused, gone = false,
            -- Whoever comes back begins where the others stand: time spent away earns nothing.
            virtual_time = case when c.eligible then c.virtual_time
                                else greatest(c.virtual_time, excluded.virtual_time) end;
    perform pg_notify('stationmaster', 'queue');
    return null;
end
$$;
create or replace trigger follow_workspace after insert or delete or update of plan, max_concurrent, paused on stationmaster.workspaces
    for each row execute function stationmaster_internal.follow_workspace();

create or replace function stationmaster_internal.follow_plan() returns trigger language plpgsql as $$
begin
    perform from stationmaster_internal.workspace_capacity c
    where c.workspace_id in (select id from stationmaster.workspaces where plan = new.name)
    order by c.workspace_id for update;
    update stationmaster_internal.workspace_capacity c
    set max_concurrent = coalesce(w.max_concurrent, new.max_concurrent), weight = new.weight
    from stationmaster.workspaces w where w.plan = new.name and c.workspace_id = w.id;
    perform pg_notify('stationmaster', 'queue');
    return null;
end
$$;
create or replace trigger follow_plan after update of max_concurrent, weight on stationmaster.plans
    for each row execute function stationmaster_internal.follow_plan();

-- A resumed definition takes its parked items back into the queue.
create or replace function stationmaster_internal.unpark() returns trigger language plpgsql as $$
begin
    with unparked as (
        update stationmaster_internal.queue_pending set stage = 'ready'
        where workspace_id = new.workspace_id and stage = 'parked' and workflow_definition_id = new.id
        returning workspace_id, rank, seq
    )
    insert into stationmaster_internal.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, rank, seq from unparked order by workspace_id, rank, seq;
    perform pg_notify('stationmaster', 'queue');
    return null;
end
$$;
create or replace trigger unpark after update of paused on stationmaster.workflow_definitions
    for each row when (old.paused and not new.paused) execute function stationmaster_internal.unpark();

-- Says why an item cannot be taken: called where one is found whose definition, in its workspace, has no version.
create or replace function stationmaster_internal.refuse_item(workspace uuid, definition uuid) returns uuid language plpgsql as $$
begin
    if not exists (select from stationmaster.workspaces w where w.id = workspace) then
        raise exception 'there is no workspace %', workspace using errcode = 'foreign_key_violation',
            hint = 'Create it first: insert into stationmaster.workspaces, or "stationmaster workspaces create".';
    elsif not exists (select from stationmaster.workflow_definitions d where d.id = definition and d.workspace_id = workspace) then
        raise exception 'workspace % has no workflow definition %', workspace, definition
            using errcode = 'foreign_key_violation';
    end if;
    raise exception 'workflow definition % has no published version', definition
        using errcode = 'foreign_key_violation',
        hint = 'Insert a version first, or set published_version to one that exists.';
end
$$;

-- Is this a trace context of the W3C: version, trace, span and flags in hexadecimal digits, none of which means nothing? Those who keep it in
-- a table have the same condition.
create or replace function stationmaster_internal.is_trace(traceparent text) returns boolean
language sql immutable parallel safe as $$
    select traceparent ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$'
$$;

-- Says what a trace context looks like, to whoever gave something else.
create or replace function stationmaster_internal.refuse_trace(traceparent text) returns void language plpgsql as $$
begin
    raise exception 'the traceparent "%" is no trace context of the W3C', left(traceparent, 80) using errcode = 'check_violation',
        hint = 'Give one like 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01, or leave it out.';
end
$$;

-- Can these values be taken? The size of an input is that of its JSON text without its blanks, which are less than half of it.
create or replace function stationmaster_internal.fits(input jsonb, run_at timestamptz, idempotency_key text, traceparent text, correlation_id text)
returns boolean language sql immutable parallel safe as $$
    select (octet_length(input::text) <= 262144
            or octet_length(input::text) < 524288
               and octet_length(replace(replace(input::text, ', ', ','), '": ', '":')) <= 262144)
       and (run_at is null or run_at between '0001-01-01 00:00Z' and '9999-12-30 00:00Z')
       and (idempotency_key is null or length(idempotency_key) between 1 and 256)
       and (traceparent is null or stationmaster_internal.is_trace(traceparent))
       and (correlation_id is null or length(correlation_id) <= 256)
$$;

-- Says which of the values cannot be taken, and why.
create or replace function stationmaster_internal.refuse_values(run_at timestamptz, idempotency_key text, traceparent text, correlation_id text)
returns void language plpgsql as $$
begin
    if not stationmaster_internal.is_trace(traceparent) then
        perform stationmaster_internal.refuse_trace(traceparent);
    end if;
    raise exception using errcode = 'check_violation', message = case
        when not stationmaster_internal.fits('{}', run_at, null, null, null) then 'run_at lies outside the years 1 to 9999'
        when not stationmaster_internal.fits('{}', null, idempotency_key, null, null) then
            format('the idempotency key has %s characters, and may have 1 to 256', length(idempotency_key))
        when not stationmaster_internal.fits('{}', null, null, null, correlation_id) then
            format('the correlation id has %s characters, and may have 256', length(correlation_id))
        else 'the input has more than 256 KiB' end;
end
$$;

-- Is somebody looking into the queue again and again? One who said so for longer than anybody does had another clock.
create or replace function stationmaster_internal.is_watched() returns boolean language sql volatile as $$
    select coalesce(pg_sequence_last_value('stationmaster_internal.queue_watched'::regclass)
                    - date_part('epoch', clock_timestamp()) * 1000 between 0 and 2000, false)
$$;

-- Accepts what came in by the door: looks at it, makes it pending, and leaves one hint for each workspace. What is due before a
-- server's next poll leaves one too: that is how a server learns of it. A hint has the number of the first item that it speaks for.
create or replace function stationmaster_internal.accept_items() returns trigger language plpgsql as $$
declare
    hinted bigint;
begin
    perform stationmaster_internal.refuse_values(i.run_at, i.idempotency_key, i.traceparent, i.correlation_id)
    from new_items i
    where not stationmaster_internal.fits(i.input, i.run_at, i.idempotency_key, i.traceparent, i.correlation_id);

    with pending as (
        insert into stationmaster_internal.queue_pending
            (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, stage, run_at, waits_for)
        select i.id, i.seq, -i.priority::bigint, i.workspace_id, i.workflow_definition_id,
               coalesce(case when d.id is not null then i.workflow_definition_version_id end,
                        stationmaster_internal.refuse_item(i.workspace_id, i.workflow_definition_id)),
               case when i.run_at > now() then 'later' else 'ready' end,
               case when i.run_at > now() then i.run_at end,
               case when i.run_at > now() then 'schedule' end
        from new_items i
        left join stationmaster.workflow_definitions d on d.id = i.workflow_definition_id and d.workspace_id = i.workspace_id
    ), hints as (
        insert into stationmaster_internal.queue_hints (id, workspace_id, rank, seq)
        select distinct on (workspace_id) seq, workspace_id, -priority::bigint, seq
        from new_items
        where run_at is null or run_at < now() + interval '10 seconds'
        order by workspace_id, priority desc, seq
        returning id
    )
    select min(id) into hinted from hints;
    if hinted is not null then
        perform stationmaster_internal.ring_for_hint(hinted);
    end if;
    return null;
end
$$;
create or replace trigger accept_items after insert on stationmaster_internal.queue_door
    referencing new table as new_items
    for each statement execute function stationmaster_internal.accept_items();

-- The words of an end that was no good one: ours about the start, the engine's about the run, or the reason.
create or replace function stationmaster_internal.words_of_end(last_error text, error jsonb, reason text, status text) returns text
language sql immutable parallel safe as $$
    select left(coalesce(nullif(last_error, ''), nullif(case jsonb_typeof(error) when 'object' then error ->> 'message' end, ''),
                         nullif(error #>> '{}', ''), nullif(reason, ''), lower(status)), 2000)
$$;
