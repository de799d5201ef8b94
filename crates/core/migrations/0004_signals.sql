-- Signals, the triggers that they meet, and the dispatchers that route them.
--
-- A signal lives in three tables, each shaped for what is done to it there:
--
--   signals_inbox    what was sent; written once, never changed
--   signals_pending  narrow; one row while the signal waits to be routed, deleted when it is
--   signals_settled  append-only; what became of it: ROUTED to a queue item, or DEAD with a reason
--
-- A dispatcher is a lease like everything exclusive: owner, epoch, expiry.

-- The id of a dispatcher: `dispatcher-<project>-<task-queue>`, with the dashes of the project doubled, so that the first odd run of
-- dashes ends the project. Names that are no slugs or are too long, and task queues that begin with a dash, get a suffix from a hash
-- of both instead, behind a dot that no slug holds: two pairs never share an id. The same function exists in Rust (id::dispatcher),
-- and a test compares them.
create function stationmaster.dispatcher_id(project text, task_queue text) returns text
language sql immutable strict parallel safe as $$
    with slugs as (
        select left(regexp_replace(translate(project, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') collate "C",
                                   '[^a-z0-9_-]', '-', 'g'), 40) as p,
               left(regexp_replace(translate(task_queue, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') collate "C",
                                   '[^a-z0-9_-]', '-', 'g'), 40) as q
    )
    select 'dispatcher-'
        || case when p = project and q = task_queue and left(q, 1) <> '-' then replace(p, '-', '--') || '-' || q
                else p || '-' || q || '.'
                     || left(encode(sha256(convert_to(length(project) || ':' || project || ':' || task_queue, 'UTF8')), 'hex'), 16)
           end
    from slugs
$$;

create table stationmaster.dispatchers (
    id             text primary key,
    project        text not null check (project <> '' and length(project) <= 200),
    task_queue     text not null check (task_queue <> '' and length(task_queue) <= 200),
    owner          uuid,
    epoch          bigint not null default 0,
    lease_until    timestamptz,
    handed_over_at timestamptz,
    resting_since  timestamptz,
    removal_wished_at timestamptz,
    removal_wished_by text,
    engine         text,
    run_id         text,
    taken_at       timestamptz,
    run_started_at timestamptz,
    created_at     timestamptz not null default now(),
    unique (project, task_queue),
    check (id = stationmaster.dispatcher_id(project, task_queue))
) with (fillfactor = 40);

-- The highest epoch of any dispatcher that was removed: one that is made anew begins above it, so that no epoch comes twice.
create table stationmaster_internal.dispatcher_floor (
    one   boolean primary key default true check (one),
    epoch bigint not null default 0
);
insert into stationmaster_internal.dispatcher_floor default values;

create table stationmaster_internal.dispatcher_servers (
    dispatcher_id text not null references stationmaster.dispatchers (id) on delete cascade,
    server_id     uuid not null,
    task_queue    text not null,
    registered_at timestamptz not null default now(),
    primary key (dispatcher_id, server_id)
);
create index dispatcher_servers_by_server on stationmaster_internal.dispatcher_servers (server_id);

create table stationmaster_internal.dispatcher_heartbeats (
    dispatcher_id text primary key,
    project       text not null,
    task_queue    text not null,
    server_id     uuid not null,
    epoch         bigint not null,
    beat_at       timestamptz not null default now()
) with (fillfactor = 40);

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
    told_at       timestamptz,
    traceparent   text
);
create index dispatcher_events_by_dispatcher on stationmaster.dispatcher_events (dispatcher_id, id);
create index dispatcher_events_untold on stationmaster.dispatcher_events (id) where told_at is null;
create index dispatcher_events_at on stationmaster.dispatcher_events using brin (at) with (autosummarize = on);

create table stationmaster.projects (
    name         text primary key check (name <> '' and length(name) <= 200),
    workspace_id uuid not null references stationmaster.workspaces (id) on delete cascade,
    created_at   timestamptz not null default now(),
    max_task_queues integer not null default 200 check (max_task_queues >= 1)
);
create index projects_by_workspace on stationmaster.projects (workspace_id);

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

-- What a signal is known by within: its id and its project, so that nobody takes an id away from somebody else. Ids come first, so that one index
-- finds those of an id; the length at the end keeps two pairs apart that would read alike.
create function stationmaster_internal.signal_key(id text, project text) returns text
language sql immutable strict parallel safe as $$
    select id || chr(31) || project || chr(31) || length(id)::text
$$;

create table stationmaster_internal.signals_inbox (
    key            text collate "C" primary key generated always as (stationmaster_internal.signal_key(id, project)) stored,
    id             text not null default stationmaster.new_id()::text check (id <> '' and length(id) <= 200),
    seq            bigint generated always as identity,
    project        text not null check (project <> '' and length(project) <= 200),
    task_queue     text not null default 'default' check (task_queue <> '' and length(task_queue) <= 200),
    name           text not null check (name <> '' and length(name) <= 200),
    dispatcher_id  text not null generated always as (stationmaster.dispatcher_id(project, task_queue)) stored,
    payload        jsonb not null default '{}',
    correlation_id text check (correlation_id <> '' and length(correlation_id) <= 256),
    traceparent    text,
    sent_by        text not null default session_user,
    received_at    timestamptz not null default now(),
    constraint the_trace_context_is_one_of_the_w3c
        check (traceparent ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$'),
    constraint payload_is_at_most_256_kib check (
        octet_length(payload::text) <= 262144
        or octet_length(replace(replace(payload::text, ', ', ','), '": ', '":')) <= 262144)
);
create unique index signals_inbox_seq on stationmaster_internal.signals_inbox (seq);
create index signals_inbox_by_project on stationmaster_internal.signals_inbox (project, seq);
create index signals_inbox_at on stationmaster_internal.signals_inbox using brin (received_at) with (autosummarize = on);

create table stationmaster_internal.signals_pending (
    signal_key    text collate "C" primary key,
    seq           bigint not null,
    dispatcher_id text not null,
    received_at   timestamptz not null,
    replays       integer not null default 0
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
create index signals_pending_by_dispatcher on stationmaster_internal.signals_pending (dispatcher_id, seq);

create table stationmaster_internal.signals_settled (
    signal_key    text collate "C" primary key,
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
create index signals_settled_dead on stationmaster_internal.signals_settled (settled_at) where status = 'DEAD';
create index signals_settled_at on stationmaster_internal.signals_settled using brin (settled_at) with (autosummarize = on);
