-- The servers themselves: how they know of each other, what one of them does for all, whether somebody looks anyway, and the events
-- that they tell.

create table stationmaster_internal.servers (
    id          uuid primary key,
    name        text not null,
    version     text not null,
    engine      text not null,
    engine_up   boolean not null,
    claiming    boolean not null,
    started_at  timestamptz not null default now(),
    seen_at     timestamptz not null default now(),
    lease_until timestamptz not null,
    wish        text check (wish in ('drain', 'exit')),
    engine_away_at timestamptz
) with (fillfactor = 50);

-- Who does not answer, as each server sees it. A server that is gone says nothing any more.
create table stationmaster_internal.target_breakers (
    server_id uuid not null references stationmaster_internal.servers on delete cascade,
    target    text not null,
    opened_at timestamptz not null,
    primary key (server_id, target)
);

-- Every server that ever was, for as long as histories may name it.
create table stationmaster_internal.server_names (
    id           uuid primary key,
    name         text not null,
    since        timestamptz not null default now(),
    version      text not null default '',
    engine       text not null default '',
    left_at      timestamptz,
    ended        text check (ended in ('left', 'drained', 'lost', 'replaced')),
    recovered    bigint not null default 0,
    recovered_by uuid,
    check ((left_at is null) = (ended is null))
);

create table stationmaster_internal.duties (
    name        text primary key,
    holder      uuid,
    token       bigint not null default 0,
    lease_until timestamptz not null default '-infinity',
    position    timestamptz
) with (fillfactor = 50);

-- Which engines executions run on. Of each name one is current: a server whose engine is another one does nothing.
create table stationmaster_internal.engines (
    id          integer generated always as identity primary key,
    name        text not null,
    identity    text not null,
    place       text not null,
    recorded_by text not null,
    recorded_at timestamptz not null default now(),
    retired_at  timestamptz
);
create unique index engines_current on stationmaster_internal.engines (name) where retired_at is null;
-- The engine inside the servers is the same in each of them.
insert into stationmaster_internal.engines (name, identity, place, recorded_by)
values ('embedded', 'embedded', 'inside each server', 'the schema');

-- A lane is executions, alarms, or the id of a dispatcher.
create table stationmaster_internal.attention (
    lane         text primary key,
    until        timestamptz not null default '-infinity',
    virtual_time double precision not null default 0
) with (fillfactor = 20);
insert into stationmaster_internal.attention (lane)
values ('executions'), ('alarms');

-- A database that was promoted, or brought back from an archive or a dump, goes on elsewhere, perhaps from a state before the last
-- commits. Empty until the first server comes, so that copies of a database nobody has used are alike.
create table stationmaster_internal.timeline (
    one  boolean primary key default true check (one),
    name text not null
);
insert into stationmaster_internal.timeline (name) values ('');

-- Writers put rows into the inbox inside their own transactions; a reader moves what has been committed into events and numbers
-- it under the lock of one row. So a number is given after the commit, in an order in which everybody sees it: whoever has read
-- up to a number has missed nothing below it, however late a transaction ends.
--
-- Steps of executions and what a bulk operation does come by the thousand, so what one statement does is one row, with an array for each
-- column, and takes as many positions as it tells of; the last of them is its position. Ids do not compress; trying to costs more than the bytes.
create table stationmaster_internal.event_inbox (
    id           bigint generated always as identity primary key,
    at           timestamptz not null default clock_timestamp(),
    kind         text not null,
    workspace_id uuid,
    detail       jsonb not null default '{}',
    items        uuid[],
    executions   uuid[],
    workspaces   uuid[]
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
alter table stationmaster_internal.event_inbox alter column items set storage external, alter column executions set storage external,
    alter column workspaces set storage external;

create table stationmaster_internal.events (
    position     bigint primary key,
    at           timestamptz not null,
    kind         text not null,
    workspace_id uuid,
    detail       jsonb not null,
    items        uuid[],
    executions   uuid[],
    workspaces   uuid[]
);
alter table stationmaster_internal.events alter column items set storage external, alter column executions set storage external,
    alter column workspaces set storage external;
create index events_at on stationmaster_internal.events using brin (at) with (autosummarize = on);

create table stationmaster_internal.event_sequence (
    one      boolean primary key default true check (one),
    position bigint not null default 0
) with (fillfactor = 20);
insert into stationmaster_internal.event_sequence default values;

-- What happened in each minute, by workspace and workflow. The row whose ids are zero is of everything; a row whose workflow is zero is of what
-- belongs to none. Counted by one server for all from what is on record, so nothing is counted while it happens.
create table stationmaster_internal.history_minutes (
    workspace_id           uuid not null,
    minute                 timestamptz not null,
    workflow_definition_id uuid not null,
    moved                  bigint not null,
    enqueued               bigint not null,
    started                bigint not null,
    completed              bigint not null,
    failed                 bigint not null,
    cancelled              bigint not null,
    terminated             bigint not null,
    timed_out              bigint not null,
    alarms_fired           bigint not null,
    alarms_failed          bigint not null,
    alarms_late            bigint not null,
    waiting                bigint,
    active                 bigint,
    wait_seconds           double precision not null,
    wait_longest           double precision not null,
    waits                  integer[],
    run_seconds            double precision not null,
    run_longest            double precision not null,
    runs                   integer[],
    primary key (workspace_id, minute, workflow_definition_id)
);
create index history_minutes_at on stationmaster_internal.history_minutes using brin (minute) with (autosummarize = on);

-- The same by the server that held what started and ended; of what no server ever held there is none.
create table stationmaster_internal.history_servers (
    server_id   uuid not null,
    minute      timestamptz not null,
    moved       bigint not null,
    started     bigint not null,
    completed   bigint not null,
    failed      bigint not null,
    cancelled   bigint not null,
    terminated  bigint not null,
    timed_out   bigint not null,
    active      bigint,
    run_seconds double precision not null,
    run_longest double precision not null,
    runs        integer[],
    primary key (server_id, minute)
);
create index history_servers_at on stationmaster_internal.history_servers using brin (minute) with (autosummarize = on);
