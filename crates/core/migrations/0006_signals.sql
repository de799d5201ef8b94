-- Signals, the triggers that they meet, and the dispatchers that route them.
--
-- A signal lives in three tables, each shaped for what is done to it there:
--
--   signals_inbox    what was sent; written once, never changed
--   signals_pending  narrow; one row while the signal waits to be routed, deleted when it is
--   signals_settled  append-only; what became of it: ROUTED to a queue item, or DEAD with a reason
--
-- The public relation signals is a view over them. A dispatcher is a lease like everything exclusive: owner, epoch, expiry.

-- The id of a dispatcher: `dispatcher-<project>-<task-queue>`. Names that are no slugs, are too long, or would make the id
-- ambiguous (a project with a dash) get a suffix from a hash of both, behind a dot that no slug holds: two pairs never share
-- an id. The same function exists in Rust (dispatchers::id), and a test compares them.
create function stationmaster.dispatcher_id(project text, task_queue text) returns text
language sql immutable strict parallel safe as $$
    with slugs as (
        select left(regexp_replace(translate(project, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') collate "C",
                                   '[^a-z0-9_-]', '-', 'g'), 40) as p,
               left(regexp_replace(translate(task_queue, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') collate "C",
                                   '[^a-z0-9_-]', '-', 'g'), 40) as q
    )
    select 'dispatcher-' || p || '-' || q
        || case when p = project and q = task_queue and position('-' in p) = 0 then ''
                else '.' || left(encode(sha256(convert_to(length(project) || ':' || project || ':' || task_queue, 'UTF8')), 'hex'), 16)
           end
    from slugs
$$;

-- One row per dispatcher. run_id is the engine's id of the first run of this epoch; a run that continued as new keeps it.
create table stationmaster.dispatchers (
    id             text primary key,
    project        text not null check (project <> '' and length(project) <= 200),
    task_queue     text not null check (task_queue <> '' and length(task_queue) <= 200),
    owner          uuid,
    epoch          bigint not null default 0,
    lease_until    timestamptz,
    handed_over_at timestamptz,
    engine         text,
    run_id         text,
    taken_at       timestamptz,
    run_started_at timestamptz,
    created_at     timestamptz not null default now(),
    unique (project, task_queue),
    check (id = stationmaster.dispatcher_id(project, task_queue))
) with (fillfactor = 40);

comment on column stationmaster.dispatchers.epoch is 'the fence: grows with every owner, and every write of a dispatcher names it';
comment on column stationmaster.dispatchers.lease_until is 'null: it never had an owner';
comment on column stationmaster.dispatchers.handed_over_at is 'the owner gave it up in good order; anybody may take it';

-- Which servers stand by a dispatcher, its owner among them.
create table stationmaster.dispatcher_servers (
    dispatcher_id text not null references stationmaster.dispatchers (id) on delete cascade,
    server_id     uuid not null,
    task_queue    text not null,
    registered_at timestamptz not null default now(),
    primary key (dispatcher_id, server_id)
);
create index dispatcher_servers_by_server on stationmaster.dispatcher_servers (server_id);

-- Heartbeats, when they are kept in PostgreSQL. They tell the supervisor what to look at; they are never the fence.
create table stationmaster.dispatcher_heartbeats (
    dispatcher_id text primary key,
    project       text not null,
    task_queue    text not null,
    server_id     uuid not null,
    epoch         bigint not null,
    beat_at       timestamptz not null default now()
) with (fillfactor = 40);

-- Until when a busy dispatcher looks into its inbox anyway, so that nobody needs to ring.
create table stationmaster.dispatcher_attention (
    dispatcher_id text primary key,
    until         timestamptz not null
) with (fillfactor = 20);

-- What happened to dispatchers, for the live stream and for webhooks. The audit has the same and is kept.
create table stationmaster.dispatcher_events (
    id            bigint generated always as identity primary key,
    at            timestamptz not null default clock_timestamp(),
    dispatcher_id text not null,
    event         text not null,
    epoch         bigint,
    server_id     uuid,
    run_id        text,
    actor         text not null,
    detail        jsonb not null default '{}',
    told_at       timestamptz
);
create index dispatcher_events_by_dispatcher on stationmaster.dispatcher_events (dispatcher_id, id);
create index dispatcher_events_untold on stationmaster.dispatcher_events (id) where told_at is null;
create index dispatcher_events_at on stationmaster.dispatcher_events using brin (at) with (autosummarize = on);

comment on column stationmaster.dispatcher_events.told_at is 'when the webhook confirmed it; null: not yet, or there is no webhook';

-- Writes one event, and the same into the audit. Called inside the statements that do the thing.
create function stationmaster.tell_of_dispatcher(
    dispatcher_id text, event text, epoch bigint, server_id uuid, run_id text, actor text, detail jsonb default '{}'
) returns bigint language sql volatile as $$
    insert into stationmaster.audit (actor, action, subject, detail)
    values (actor, 'dispatcher.' || event, dispatcher_id,
            detail || jsonb_strip_nulls(jsonb_build_object('epoch', epoch, 'server_id', server_id, 'run_id', run_id)));
    select pg_notify('stationmaster', 'dispatchers');
    insert into stationmaster.dispatcher_events (dispatcher_id, event, epoch, server_id, run_id, actor, detail)
    values (dispatcher_id, event, epoch, server_id, run_id, actor, detail)
    returning id;
$$;

-- A project belongs to one workspace: that of its first trigger.
create table stationmaster.projects (
    name         text primary key check (name <> '' and length(name) <= 200),
    workspace_id uuid not null references stationmaster.workspaces (id) on delete cascade,
    created_at   timestamptz not null default now()
);
create index projects_by_workspace on stationmaster.projects (workspace_id);

-- The rule that maps the name of a signal to a definition.
create table stationmaster.triggers (
    project                text not null references stationmaster.projects (name) on delete cascade,
    task_queue             text not null default '' check (length(task_queue) <= 200),
    name                   text not null check (name <> '' and length(name) <= 200),
    workflow_definition_id uuid not null references stationmaster.workflow_definitions (id) on delete cascade,
    payload_schema         jsonb,
    priority               integer not null default 0,
    created_at             timestamptz not null default now(),
    updated_at             timestamptz not null default now(),
    primary key (project, task_queue, name)
);
create index triggers_by_definition on stationmaster.triggers (workflow_definition_id);

comment on column stationmaster.triggers.task_queue is 'empty: every task queue of the project that has no trigger of its own for the name';

-- The first trigger gives a project its workspace; every other one has to be of the same.
create function stationmaster.accept_trigger() returns trigger language plpgsql as $$
declare
    wanted uuid;
    kept uuid;
begin
    select workspace_id into wanted from stationmaster.workflow_definitions where id = new.workflow_definition_id;
    if wanted is null then
        raise exception 'there is no workflow definition %', new.workflow_definition_id using errcode = 'foreign_key_violation';
    end if;
    insert into stationmaster.projects (name, workspace_id) values (new.project, wanted) on conflict (name) do nothing;
    select workspace_id into kept from stationmaster.projects where name = new.project;
    if kept is distinct from wanted then
        raise exception 'the project "%" belongs to workspace %, and the workflow definition to another', new.project, kept
            using errcode = 'check_violation';
    end if;
    if new.task_queue <> '' then
        insert into stationmaster.dispatchers (id, project, task_queue)
        values (stationmaster.dispatcher_id(new.project, new.task_queue), new.project, new.task_queue)
        on conflict do nothing;
    end if;
    new.updated_at := now();
    return new;
end
$$;
create trigger accept_trigger before insert or update on stationmaster.triggers
    for each row execute function stationmaster.accept_trigger();

create table stationmaster.signals_inbox (
    id             text primary key default stationmaster.new_id()::text check (id <> '' and length(id) <= 200),
    seq            bigint generated always as identity,
    project        text not null check (project <> '' and length(project) <= 200),
    task_queue     text not null default 'default' check (task_queue <> '' and length(task_queue) <= 200),
    name           text not null check (name <> '' and length(name) <= 200),
    dispatcher_id  text not null generated always as (stationmaster.dispatcher_id(project, task_queue)) stored,
    payload        jsonb not null default '{}',
    correlation_id text check (correlation_id <> '' and length(correlation_id) <= 256),
    traceparent    text check (length(traceparent) <= 256),
    sent_by        text not null default session_user,
    received_at    timestamptz not null default now(),
    constraint payload_is_at_most_256_kib check (
        octet_length(payload::text) <= 262144
        or octet_length(replace(replace(payload::text, ', ', ','), '": ', '":')) <= 262144)
);
create unique index signals_inbox_seq on stationmaster.signals_inbox (seq);

create table stationmaster.signals_pending (
    signal_id     text primary key,
    seq           bigint not null,
    dispatcher_id text not null,
    received_at   timestamptz not null,
    replays       integer not null default 0
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
create index signals_pending_by_dispatcher on stationmaster.signals_pending (dispatcher_id, seq);

create table stationmaster.signals_settled (
    signal_id     text primary key,
    dispatcher_id text not null,
    status        text not null check (status in ('ROUTED', 'DEAD')),
    item_id       uuid,
    reason        text,
    detail        text,
    epoch         bigint not null,
    settled_by    text not null,
    settled_at    timestamptz not null,
    replays       integer not null
);
create index signals_settled_dead on stationmaster.signals_settled (settled_at) where status = 'DEAD';
create index signals_settled_at on stationmaster.signals_settled using brin (settled_at) with (autosummarize = on);

-- Every way in ends here: what was sent becomes pending, its dispatcher exists, and somebody is told unless a dispatcher
-- looks anyway. NOTIFY takes a lock of the whole instance at commit, so a busy inbox sends none. A ring that is lost costs the
-- poll interval, never a signal.
create function stationmaster.accept_signals() returns trigger language plpgsql as $$
begin
    insert into stationmaster.signals_pending (signal_id, seq, dispatcher_id, received_at)
    select id, seq, dispatcher_id, received_at from new_signals;

    insert into stationmaster.dispatchers (id, project, task_queue)
    select distinct on (n.dispatcher_id) n.dispatcher_id, n.project, n.task_queue
    from new_signals n
    where not exists (select from stationmaster.dispatchers d where d.id = n.dispatcher_id)
    order by n.dispatcher_id
    on conflict do nothing;

    if exists (select from new_signals n
               where not exists (select from stationmaster.dispatcher_attention a
                                 where a.dispatcher_id = n.dispatcher_id and a.until > clock_timestamp())) then
        perform pg_notify('stationmaster', 'signals');
    end if;
    return null;
end
$$;
create trigger accept_signals after insert on stationmaster.signals_inbox
    referencing new table as new_signals
    for each statement execute function stationmaster.accept_signals();

create view stationmaster.signals as
select s.id, s.project, s.task_queue, s.name, coalesce(d.status, 'PENDING') as status, e.execution_id, s.received_at, s.payload,
       s.correlation_id, s.traceparent, s.sent_by, s.dispatcher_id, s.seq, d.item_id as queue_item_id, d.reason, d.detail,
       d.epoch, d.settled_at, coalesce(d.replays, p.replays, 0) as replays
from stationmaster.signals_inbox s
left join stationmaster.signals_settled d on d.signal_id = s.id
left join stationmaster.signals_pending p on p.signal_id = s.id
left join lateral (
    select q.execution_id from stationmaster.queue_pending q where q.item_id = d.item_id and q.execution_id is not null
    union all
    select a.execution_id from stationmaster.executions_active a where a.item_id = d.item_id
    union all
    select f.execution_id from stationmaster.executions_finished f
    where f.item_id = d.item_id and f.superseded_at is null and f.status is not null
    limit 1
) e on true;

alter view stationmaster.signals alter column task_queue set default 'default';
alter view stationmaster.signals alter column payload set default '{}';
alter view stationmaster.signals alter column sent_by set default session_user;

-- A plain INSERT sends signals, as one statement, however many rows it has.
create rule send as on insert to stationmaster.signals do instead
insert into stationmaster.signals_inbox (id, project, task_queue, name, payload, correlation_id, traceparent, sent_by)
values (coalesce(new.id, stationmaster.new_id()::text), new.project, coalesce(new.task_queue, 'default'), new.name,
        coalesce(new.payload, '{}'), new.correlation_id, new.traceparent, coalesce(new.sent_by, session_user))
returning id, project, task_queue, name, 'PENDING'::text, null::uuid, received_at, payload, correlation_id, traceparent, sent_by,
          dispatcher_id, seq, null::uuid, null::text, null::text, null::bigint, null::timestamptz, 0;

-- Sends a signal inside the caller's transaction. The same id with the same signal is acknowledged again; with another one it
-- is an error.
create function stationmaster.send_signal(
    project text,
    name text,
    payload jsonb default '{}',
    task_queue text default 'default',
    id text default null,
    correlation_id text default null,
    traceparent text default null,
    sent_by text default null
) returns text language plpgsql as $$
#variable_conflict use_column
declare
    sent text;
begin
    insert into stationmaster.signals_inbox (id, project, task_queue, name, payload, correlation_id, traceparent, sent_by)
    values (coalesce(send_signal.id, stationmaster.new_id()::text), send_signal.project,
            coalesce(send_signal.task_queue, 'default'), send_signal.name, coalesce(send_signal.payload, '{}'),
            send_signal.correlation_id, send_signal.traceparent, coalesce(send_signal.sent_by, session_user))
    on conflict (id) do nothing
    returning id into sent;
    if sent is not null then
        return sent;
    end if;
    select id into sent from stationmaster.signals_inbox
    where id = send_signal.id and project = send_signal.project and task_queue = coalesce(send_signal.task_queue, 'default')
      and name = send_signal.name and payload = coalesce(send_signal.payload, '{}')
      and correlation_id is not distinct from send_signal.correlation_id;
    if sent is null then
        raise exception 'the id "%" was used for another signal', send_signal.id using errcode = 'unique_violation';
    end if;
    return sent;
end
$$;
